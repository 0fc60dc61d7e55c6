"""Answers that passed before version 0.2, and were kept, still pass and still take part.

`tests/kept_answers` has them as a workspace keeps them. Their rule of attention is `attention`.
"""

import pytest
import torch

from course_lib.answers.answer import InProcess
from course_lib.answers.source import define
from course_lib.checking.catalogue import load
from course_lib.checking.verdict import judge
from course_lib.encoder import Encoder, EncoderBlock
from course_lib.files.paths import ROOT
from course_lib.instruments.recording import record_weights
from course_lib.key_value_cache import use_cache
from course_lib.masks import causal_mask
from course_lib.multi_head import MultiHeadAttention
from course_lib.self_attention import scaled_dot_product_attention
from course_lib.seq2seq import Seq2Seq

FOLDER = ROOT / "tests" / "kept_answers"
KEPT = [file.relative_to(FOLDER).with_suffix("").as_posix() for file in FOLDER.glob("*/*.txt")]


def kept(exercise):
    return define((FOLDER / f"{exercise}.txt").read_text("utf8"), load(exercise).name)


@pytest.mark.parametrize("exercise", sorted(KEPT))
def test_a_kept_answer_passes(exercise):
    verdict = judge(load(exercise), InProcess(kept(exercise)), seed=1)
    assert verdict.status == "passed", verdict.message


def test_kept_parts_have_the_place_of_ours_in_a_model_and_take_its_weights():
    tokens, sizes = torch.tensor([3, 0, 4]), (5, 2, 8, 2, 12, 6)
    ours, block = Encoder(*sizes), kept("encoder/block")
    attention = kept("multi_head/attention")
    for theirs in (
        Encoder(*sizes, block=block),
        Encoder(*sizes, block=lambda *sizes: EncoderBlock(*sizes, attention=attention)),
        kept("encoder/stack")(*sizes),
    ):
        theirs.load_state_dict(ours.state_dict())
        torch.testing.assert_close(theirs(tokens), ours(tokens))


def test_a_kept_attention_is_recorded_and_cached():
    layer, x = kept("multi_head/attention")(8, 2), torch.randn(5, 8)
    whole = layer(x, x, x, causal_mask(5))
    with record_weights(layer) as weights, use_cache([layer]):
        pieces = [layer(piece, piece, piece) for piece in x.split(2)]
    torch.testing.assert_close(torch.cat(pieces), whole)
    assert [tuple(w.shape) for w in weights] == [(2, 2, 2), (2, 2, 4), (2, 1, 5)]
    assert layer.attention is scaled_dot_product_attention


def test_handed_out_notebooks_may_say_attention_for_a_rule():
    def rule(q, k, v, mask):
        return v

    layer = MultiHeadAttention(8, 2, attention=rule)
    assert layer.rule is layer.attention is rule
    layer.attention = scaled_dot_product_attention
    assert layer.rule is scaled_dot_product_attention
    model = Seq2Seq(5, 5, 4, 6, attention=lambda q, states, mask: (q, q))
    model.attention = None
    assert model.attend is None
