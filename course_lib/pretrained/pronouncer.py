"""A reader of English spelling that this course trained (lesson 02); the site runs it as well.

The encoder-decoder with attention of the lesson, with states of 128 numbers in place of 64, after
6,000 steps in place of 1,500: research/experiments/pronouncer.py.
"""

from course_lib.attention import attend
from course_lib.data.spelling import LETTERS, SOUNDS
from course_lib.instruments.weights import load_weights
from course_lib.seq2seq import Seq2Seq

NAME = "pronouncer"  # of the file with its weights
D_EMBEDDING, D_HIDDEN = 32, 128


def untrained() -> Seq2Seq:
    """Return the model as it is before training."""
    sizes = (len(LETTERS), len(SOUNDS), D_EMBEDDING, D_HIDDEN)
    return Seq2Seq(*sizes, bidirectional=True, attend=attend)


def load() -> Seq2Seq:
    """Return the trained model."""
    model = untrained()
    load_weights(NAME, model)
    return model.eval()
