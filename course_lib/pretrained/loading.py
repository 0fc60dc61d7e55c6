"""What every pretrained model needs: room in memory, and weights that fit its parameters."""

from collections.abc import Mapping

import psutil
from torch import Tensor, nn


def needs_memory(gigabytes: float, who: str) -> None:
    """Raise MemoryError, before anything is loaded, where less memory than this is free."""
    free = psutil.virtual_memory().available / 1e9
    if free < gigabytes:
        raise MemoryError(
            f"{who} needs {gigabytes:.1f} GB of memory and {free:.1f} GB are free: close other "
            "programs, or shut down the kernels of other notebooks"
        )


class Weights:
    """The tensors of a model's file by their names there; it notes which of them are taken."""

    def __init__(self, tensors: Mapping[str, Tensor], file: str):
        self._tensors, self._file, self._taken = tensors, file, set()

    def __getitem__(self, name: str) -> Tensor:
        """Take a tensor. Raises ValueError where the file has none of this name."""
        if name not in self._tensors:
            raise ValueError(f"{self._file} lacks the tensor {name}: is it another model's?")
        self._taken.add(name)
        return self._tensors[name]

    def fit(self, model: nn.Module, weights: Mapping[str, Tensor], spare: tuple = ()) -> None:
        """Give the model `weights`, made of these tensors, and ready it for use, not for training.

        Names that begin as one in `spare` does may be left over. Raises ValueError for a tensor
        that the model does not have, or has in another shape.
        """
        left = [name for name in self._tensors if name not in self._taken]
        if odd := [name for name in left if not name.startswith(spare)]:
            raise ValueError(f"{self._file} has a tensor that this model has not: {odd[0]}")
        for name, parameter in model.state_dict().items():
            given = tuple(weights[name].shape) if name in weights else "missing"
            if given != tuple(parameter.shape):
                raise ValueError(
                    f"{self._file} should make {name} of shape {tuple(parameter.shape)}, but it is "
                    f"{given}: was the model built with other parts?"
                )
        model.load_state_dict(weights, assign=True)
        model.eval().requires_grad_(requires_grad=False)
