"""The translator's weights load into anybody's classes, and write what the results show."""

from functools import partial

import pytest

from course_lib.data import home_assistant, store, translating
from course_lib.instruments import results
from course_lib.pretrained import home_translator
from course_lib.transformer import DecoderBlock, EncoderBlock, Transformer
from course_lib.translation import beam_search


class Mine(Transformer):
    pass


class MyEncoderBlock(EncoderBlock):
    pass


class MyDecoderBlock(DecoderBlock):
    pass


@pytest.mark.skipif(
    not store.is_fetched("homeassistant"),
    reason="needs homeassistant: run `course fetch homeassistant`",
)
def test_anybodys_classes_write_what_the_results_show():
    model = home_translator.load(Mine, MyEncoderBlock, MyDecoderBlock)
    assert all(isinstance(block, MyEncoderBlock) for block in model.encoder.blocks)
    assert all(isinstance(block, MyDecoderBlock) for block in model.decoder.blocks)
    texts = [text for pair in home_assistant.split("pt").learning for text in pair]
    pieces = translating.learn_pieces(texts, home_translator.VOCAB)
    duel = results.load("translation")["figures"]["duel"]
    shown = duel["corpora"]["held out"]["shown"][:10]
    search = partial(beam_search, alpha=duel["alpha"])
    sources = [row[0] for row in shown]
    found = translating.translate_by_beam(model, pieces, sources, beam_search=search)
    # on another processor one may fall the other way
    assert sum(text == row[2] for text, row in zip(found, shown, strict=True)) >= 9
