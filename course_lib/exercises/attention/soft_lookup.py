"""A table that answers with a mixture: attention as a soft lookup."""

import torch

from course_lib.attention import soft_lookup
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION

exercise = Exercise(
    reference=soft_lookup,
    lesson="02_kernel_regression",
    title="A table that answers softly",
    minutes=12,
    difficulty=2,
    hints=(
        "You have built the parts: one compares, one turns scores into weights, one averages. "
        "Between which two of them can a temperature make differences larger?",
        "Scores 1 and 2 become 10 and 20 at the temperature 0.1. Which operation does that, and "
        "which weights follow?",
        "How do you tell one query from several, when the keys may have batch dimensions as well? "
        "And what makes a list of one out of it?",
    ),
    clauses={
        "one query (d_k) or several": "one_query_only",
        "As the temperature falls": "as the temperature falls",
    },
    forbidden=FUSED_ATTENTION,
)


@exercise.cases
def cases(draw: Draw):
    yield "one query", (draw.normal(3), draw.normal(2, 3), draw.normal(2, 4), 1.0)
    yield "a low temperature", (draw.normal(3), draw.normal(4, 3), draw.normal(4, 2), 0.1)
    yield "several queries", (draw.normal(6, 3), draw.normal(5, 3), draw.normal(5, 4), 0.7)
    yield (
        "a batch, one query each",
        (draw.normal(2, 4), draw.normal(2, 3, 4), draw.normal(2, 3, 5), 2.0),
    )
    yield (
        "a batch of one, with one query",
        (draw.normal(1, 3), draw.normal(1, 4, 3), draw.normal(1, 4, 2), 0.8),
    )
    yield (
        "a batch, several queries each",
        (draw.normal(2, 3, 4), draw.normal(2, 6, 4), draw.normal(2, 6, 5), 1.5),
    )
    yield (
        "two batch dimensions, one query each",
        (draw.normal(3, 2, 4), draw.normal(3, 2, 5, 4), draw.normal(3, 2, 5, 6), 0.9),
    )
    yield "a list of one query", (draw.normal(1, 3), draw.normal(4, 3), draw.normal(4, 2), 1.0)
    yield "one key", (draw.normal(3), draw.normal(1, 3), draw.normal(1, 4), 0.5)
    yield (
        "as many keys as each has numbers",
        (draw.normal(4), draw.normal(4, 4), draw.normal(4, 2), 1.3),
    )


@exercise.edges
def edges(draw: Draw):
    yield (
        "as many queries as keys",
        (draw.normal(3, 4), draw.normal(3, 4), draw.normal(3, 2), 0.6),
    )
    yield (
        "as many queries in each table as tables",
        (draw.normal(2, 2, 4), draw.normal(2, 5, 4), draw.normal(2, 5, 3), 1.2),
    )


@exercise.requires("as the temperature falls, the result tends to the nearest key's value", 2)
def cold(answer, draw: Draw):
    order, values = torch.tensor([2, 0, 3]), draw.normal(4, 5)
    queries = torch.eye(4)[order] + 0.1 * draw.normal(3, 4)
    # scores that differ by a thousandth of that are told apart by a thousandth of the temperature
    found = [answer(factor * queries, torch.eye(4), values, factor * 0.002) for factor in (1, 1e-3)]
    return all(torch.allclose(x, values[order], atol=1e-5) for x in found)


@exercise.requires("as the temperature rises, the result tends to the mean of the values")
def hot(answer, draw: Draw):
    values = draw.normal(4, 5)
    found = answer(draw.normal(3), draw.normal(4, 3), values, 1e6)
    return torch.allclose(found, values.mean(0), atol=1e-4)


@exercise.mistake
def multiplied(query, keys, values, temperature):
    """The scores were multiplied by the temperature, so the lookup grows softer as it falls. What
    must happen to the scores 1 and 2 to become 10 and 20 at the temperature 0.1?"""
    return soft_lookup(query, keys, values, 1 / temperature)


@exercise.mistake
def scaled_twice(query, keys, values, temperature):
    """The scores were divided by sqrt(d_k) as well as by the temperature. Here the temperature is
    the only scale."""
    return soft_lookup(query, keys, values, temperature * query.shape[-1] ** 0.5)


@exercise.mistake
def outside_the_softmax(query, keys, values, temperature):
    """The temperature stands outside the softmax: the weights no longer sum to one, and are as soft
    as before. What is it that it should sharpen?"""
    return soft_lookup(query, keys, values, 1.0) / temperature


@exercise.mistake
def temperature_ignored(query, keys, values, temperature):
    """The temperature changes nothing, whatever it is."""
    return soft_lookup(query, keys, values, 1.0)


@exercise.mistake
def hard(query, keys, values, temperature):
    """This is a hard lookup: one value came back whole, and no gradient reaches query and keys.
    What does the second-best key contribute at the temperature 1?"""
    single = query.dim() < keys.dim()
    scores = (query.unsqueeze(-2) if single else query) @ keys.mT
    chosen = torch.nn.functional.one_hot(scores.argmax(-1), keys.shape[-2])
    found = chosen.to(values.dtype) @ values
    return found.squeeze(-2) if single else found


@exercise.mistake(raises=RuntimeError)
def crossed(query, keys, values, temperature):
    """In a batch with one query each, every query was looked up in every table: the batch was taken
    for a list of queries. Which axis is a single query short of?"""
    return torch.softmax(query @ keys.mT / temperature, -1) @ values


@exercise.mistake(raises=RuntimeError)
def crossed_and_temperature_ignored(query, keys, values, temperature):
    """The temperature changes nothing, whatever it is. Besides, in a batch with one query each,
    every query was looked up in every table."""
    return torch.softmax(query @ keys.mT, -1) @ values


@exercise.mistake(raises=RuntimeError)
def crossed_and_multiplied(query, keys, values, temperature):
    """The scores were multiplied by the temperature: what must happen to 1 and 2 to become 10 and
    20 at the temperature 0.1? Besides, in a batch with one query each, every query was looked up in
    every table."""
    return torch.softmax(query @ keys.mT * temperature, -1) @ values


@exercise.mistake(raises=RuntimeError)
def one_query_only(query, keys, values, temperature):
    """Right for one query, but several do not fit: keys times query makes one score a key, with no
    room for an axis of queries."""
    return torch.softmax(keys @ query / temperature, -1) @ values


@exercise.mistake
def squeezed_too_much(query, keys, values, temperature):
    """Right but for a batch of one, whose axis has vanished: `squeeze()` drops every axis of size
    one. Which one did you add yourself?"""
    return soft_lookup(query, keys, values, temperature).squeeze()


@exercise.mistake
def axis_kept(query, keys, values, temperature):
    """One query came back as a list of one: the axis that it was given on the way in is still
    there. Where can it be taken off again?"""
    queries = query.unsqueeze(-2) if query.dim() < keys.dim() else query
    return soft_lookup(queries, keys, values, temperature)


@exercise.mistake
def distances(query, keys, values, temperature):
    """These weights come from distances, where the formula has dot products. The two put the keys
    in one order only while all keys are equally long."""
    single = query.dim() < keys.dim()
    queries = query.unsqueeze(-2) if single else query
    squares = (queries.unsqueeze(-2) - keys.unsqueeze(-3)).square().sum(-1)
    found = torch.softmax(-squares / temperature, -1) @ values
    return found.squeeze(-2) if single else found


@exercise.mistake
def over_queries(query, keys, values, temperature):
    """The queries shared out each key among themselves: with several queries, the softmax ran over
    the queries. Along which axis do the keys of one query stand?"""
    if query.dim() < keys.dim():
        return soft_lookup(query, keys, values, temperature)
    return torch.softmax(query @ keys.mT / temperature, -2) @ values


@exercise.mistake
def over_one_query_too(query, keys, values, temperature):
    """The softmax ran over the queries: one query alone gives every key the weight 1, and several
    share each key among themselves. Along which axis are the keys of one query?"""
    single = query.dim() < keys.dim()
    scores = (query.unsqueeze(-2) if single else query) @ keys.mT
    found = torch.softmax(scores / temperature, -2) @ values
    return found.squeeze(-2) if single else found


@exercise.mistake
def over_the_first_axis(query, keys, values, temperature):
    """The weights add up to one along the first axis, which belongs to the batch or the queries.
    Along which axis do the keys of one query stand?"""
    single = query.dim() < keys.dim()
    scores = (query.unsqueeze(-2) if single else query) @ keys.mT
    found = torch.softmax(scores / temperature, 0) @ values
    return found.squeeze(-2) if single else found


stock.unstable(
    exercise,
    "At a low temperature the result is NaN: exp(500) fits into no float32. Which softmax of "
    "yours stays finite whatever the scores?",
)
stock.exchanged(
    exercise,
    "keys",
    "values",
    "Keys and values have changed places: the query was compared with the values, and the keys "
    "were averaged. Which of the two says whether an entry fits?",
)


@exercise.alternative
def in_one_pattern(query, keys, values, temperature):
    if query.dim() == keys.dim():
        scores = torch.einsum("...qd,...kd->...qk", query, keys)
        weights = (scores / temperature).softmax(-1)
        return torch.einsum("...qk,...kv->...qv", weights, values)
    weights = (torch.einsum("...d,...kd->...k", query, keys) / temperature).softmax(-1)
    return torch.einsum("...k,...kv->...v", weights, values)


@exercise.alternative
def sharpening_the_keys(query, keys, values, temperature):
    shape = query.shape[:-1]
    queries = query.reshape(*keys.shape[:-2], -1, query.shape[-1])
    scores = torch.matmul(queries, (keys / temperature).transpose(-2, -1))
    weights = torch.exp(scores - scores.logsumexp(-1, keepdim=True))
    return torch.matmul(weights, values).reshape(*shape, -1)
