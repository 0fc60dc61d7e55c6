import pkgutil
from dataclasses import replace

import pytest
import torch

from course_lib.answers.source import find_source
from course_lib.checking import forbidden
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.catalogue import load
from course_lib.multi_head import MultiHeadAttention
from course_lib.self_attention import SelfAttention, scaled_dot_product_attention

STOCK = (
    stock.ignored,
    stock.mask_inverted,
    stock.mask_as_condition,
    stock.unstable,
    stock.over_queries,
    stock.nowhere_is_nan,
    stock.nowhere_is_everywhere,
    stock.masked_after,
    stock.mask_added,
    stock.masked_with_zero,
    stock.no_softmax,
)


def bank(exercise_id, *factories):
    exercise = replace(load(exercise_id), mistakes=[])
    for factory in factories:
        factory(exercise)
    return {mistake.name: mistake.answer for mistake in exercise.mistakes}


@pytest.mark.parametrize(
    "exercise_id", ["self_attention/scaled_dot_product", "self_attention/layer"]
)
def test_each_stock_mistake_has_a_name_and_a_sentence_of_its_own(exercise_id):
    exercise = replace(load(exercise_id), mistakes=[])
    for factory in STOCK:
        factory(exercise)
    stock.unscaled(exercise, exercise.parameters[0].name)
    assert len({x.name for x in exercise.mistakes}) == len(exercise.mistakes)
    assert not any(find_source(x.answer) for x in exercise.mistakes)
    assert len({x.sentence for x in exercise.mistakes}) == len(STOCK) + 1


def test_arguments_come_by_place_and_by_name_and_the_rest_stays():
    exchanged = bank(
        "self_attention/scaled_dot_product", lambda x: stock.exchanged(x, "k", "v")
    ).popitem()[1]
    q, k, v = torch.randn(3, 4, 4)
    mask = torch.ones(4, 4).bool().tril()
    expected = scaled_dot_product_attention(q, v, k, mask)
    assert torch.equal(exchanged(q, k, v, mask), expected)
    assert torch.equal(exchanged(q, k, v=v, mask=mask), expected)


def test_a_layer_attends_with_the_other_softmax_wherever_it_keeps_its_rule():
    x = torch.randn(3, 4)
    for build, exercise_id, right in (
        ((4, 2, 3), "self_attention/layer", SelfAttention),
        ((4, 2), "multi_head/attention", MultiHeadAttention),
    ):
        layer = bank(exercise_id, stock.nowhere_is_nan).popitem()[1](*build)
        tokens = (x,) if right is SelfAttention else (x, x, x)
        nowhere = torch.zeros(3, 3).bool()
        assert layer(*tokens, nowhere).isnan().all()
        assert right(*build)(*tokens, nowhere).isfinite().all()


def test_every_forbidden_name_is_that_of_something():
    groups = [x for x in vars(forbidden).values() if isinstance(x, tuple)]
    groups += [forbidden.SAME, [y for x in forbidden.SAME.values() for y in x.split()]]
    groups.append(forbidden.OPERATIONS)
    for name in {name for group in groups for name in group}:
        assert pkgutil.resolve_name(name), name
