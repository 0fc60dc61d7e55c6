"""Weights that the course has trained, in 16 bits: `make results`, then weights/NAME."""

import torch
from safetensors.torch import load_file, save
from torch import nn

from course_lib.files.atomic import write_atomically
from course_lib.instruments.results import FOLDER


def save_weights(name: str, model: nn.Module) -> None:
    """Write weights/NAME.safetensors: each parameter once, under its name, in float16."""
    path = FOLDER / "weights" / f"{name}.safetensors"
    path.parent.mkdir(exist_ok=True)
    halved = {name: weight.detach().half() for name, weight in model.named_parameters()}
    write_atomically(path, save(halved))


def load_weights(name: str, model: nn.Module) -> None:
    """Set a model's parameters to those that `save_weights` wrote.

    The model may be of anybody's classes, as long as its parameters have the same names and shapes;
    parameters that it ties need one of their names. Raises FileNotFoundError for weights that are
    not there, and ValueError for a model of other parameters.
    """
    path = FOLDER / "weights" / f"{name}.safetensors"
    if not path.is_file():
        raise FileNotFoundError(
            f"there are no weights called {name!r} in {path.parent}: `make results` trains them"
        )
    stored = load_file(path)
    parameters = dict(model.named_parameters(remove_duplicate=False))
    given = {id(parameters[key]) for key in stored if key in parameters}
    wrong = [f"it has no {key}" for key in sorted(stored.keys() - parameters.keys())]
    for key, own in parameters.items():
        if id(own) not in given:
            wrong.append(f"they have no {key}")
        elif key in stored and stored[key].shape != own.shape:
            wrong.append(f"its {key} is {tuple(own.shape)}, theirs {tuple(stored[key].shape)}")
    if wrong:
        raise ValueError(f"the weights {name!r} are not for this model: {', '.join(wrong)}")
    with torch.no_grad():
        for key, weight in stored.items():
            parameters[key].copy_(weight)
