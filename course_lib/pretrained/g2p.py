"""g2p-en: a real trained encoder-decoder from spelling to sound, without attention (lesson 01).

Park & Kim 2019, https://github.com/Kyubyong/g2p; trained on CMUdict.
"""

import io

import numpy as np
import torch

from course_lib.data import store
from course_lib.data.spelling import LETTERS, SOUNDS
from course_lib.seq2seq import Seq2Seq

MEMBER = "g2p_en/checkpoint20.npz"
D_HIDDEN = 256

# their sounds begin <pad> <unk> <s> </s>, ours <pad> <start> <stop>; all others keep their order
ROWS = [0, *range(2, len(SOUNDS) + 1)]


def load() -> Seq2Seq:
    """Return the model, 0.8 million parameters: one GRU each side, the context as first state.

    Its weights lie transposed, as torch's do. Row 1 of its letters, the unknown one, stands where
    our START is, which no source has; row 1 of its sounds is left out.

    Raises `store.NotFetched` or `store.Damaged`, and ValueError for a tensor that is missing or
    has another shape.
    """
    file = np.load(io.BytesIO(store.read("g2p-en", MEMBER)))
    model = Seq2Seq(len(LETTERS), len(SOUNDS), D_HIDDEN, D_HIDDEN)
    model.load_state_dict(
        {
            "encoder.embedding.weight": _tensor(file, "enc_emb", len(LETTERS), D_HIDDEN),
            **_gru(file, "enc", "encoder.rightward"),
            "embedding.weight": _tensor(file, "dec_emb", len(SOUNDS) + 1, D_HIDDEN)[ROWS],
            **_gru(file, "dec", "decoder"),
            "output.weight": _tensor(file, "fc_w", len(SOUNDS) + 1, D_HIDDEN)[ROWS],
            "output.bias": _tensor(file, "fc_b", len(SOUNDS) + 1)[ROWS],
        }
    )
    return model.eval()


def _gru(file: np.lib.npyio.NpzFile, theirs: str, ours: str) -> dict[str, torch.Tensor]:
    """Return the four weights of one recurrent unit, under our names and the right way round."""
    wide = 3 * D_HIDDEN
    return {
        f"{ours}.w_x": _tensor(file, f"{theirs}_w_ih", wide, D_HIDDEN).T,
        f"{ours}.w_h": _tensor(file, f"{theirs}_w_hh", wide, D_HIDDEN).T,
        f"{ours}.b_x": _tensor(file, f"{theirs}_b_ih", wide),
        f"{ours}.b_h": _tensor(file, f"{theirs}_b_hh", wide),
    }


def _tensor(file: np.lib.npyio.NpzFile, name: str, *shape: int) -> torch.Tensor:
    """Return one tensor of the file, if it is there in its shape."""
    given = file[name].shape if name in file else "missing"
    if given != shape:
        raise ValueError(
            f"{MEMBER} should hold {name} of shape {shape}, but it is {given}: "
            "is this g2p-en 2.1.0?"
        )
    return torch.from_numpy(file[name])
