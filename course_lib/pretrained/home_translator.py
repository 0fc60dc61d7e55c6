"""A translator of a home's texts, from English to Portuguese, trained by this course (lesson 11).

Three encoder and two decoder blocks, 2.9 million parameters, trained for eighteen minutes of one
core by research/experiments/translation.py on the pairs of `home_assistant.split("pt")`.
"""

from collections.abc import Callable

from torch import nn

from course_lib.data.translating import MAX_LENGTH
from course_lib.instruments.weights import load_weights
from course_lib.transformer import DecoderBlock, EncoderBlock, Transformer

NAME = "translator"  # of the file with its weights
VOCAB, LAYERS, DECODER_LAYERS, D_MODEL, HEADS = 2000, 3, 2, 192, 4


def load(
    model: Callable[..., Transformer] = Transformer,
    encoder_block: Callable[..., nn.Module] = EncoderBlock,
    decoder_block: Callable[..., nn.Module] = DecoderBlock,
) -> Transformer:
    """Return the trained model, made of these three classes: the course's, or your own.

    They take the arguments of `Transformer`, `EncoderBlock` and `DecoderBlock`, and name parameters
    as they do. Its tokens are those of `translating.learn_pieces` with `VOCAB` pieces.
    """
    made = model(
        *(VOCAB, LAYERS, D_MODEL, HEADS, 4 * D_MODEL, MAX_LENGTH, "pre"),
        encoder_block=encoder_block,
        decoder_block=decoder_block,
    )
    made.decoder.blocks = made.decoder.blocks[:DECODER_LAYERS]
    load_weights(NAME, made)
    return made.eval()
