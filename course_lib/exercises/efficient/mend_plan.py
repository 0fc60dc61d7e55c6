"""The online softmax over any list of tiles, with a fault to be mended."""

import torch

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION
from course_lib.efficient.plan import attend_by_plan

exercise = Exercise(
    reference=attend_by_plan,
    lesson="13_bigbird",
    title="Find the bug: one loop, every pattern",
    minutes=6,
    difficulty=2,
    hints=(
        "The cases without a mask pass, and those in which every query sees a key of its first "
        "tile. Take a query that sees none of them: what are its scores, and what is `risen`?",
        "What is minus infinity less minus infinity? With which number could the maximum begin "
        "instead, so that it is below every score and a difference to it is still a number?",
    ),
    clauses={
        "A plan has a row": GIVEN,
        "a tile is (first, last, mask)": GIVEN,
        "not in every tile": "a first tile that hides all",
        "Time O": GIVEN,
    },
    # what the sums begin with is wiped out by the first real maximum
    equivalent=("0.0 -> -1.0", "0.0 -> 1.0"),
    forbidden=(*FUSED_ATTENTION, "course_lib.efficient.kernel.attend"),
)

HIDE_FIRST = torch.tensor([[False, False], [True, False]])


def words(draw: Draw, *shape: int, d_k: int, d_v: int):
    return draw.normal(*shape, d_k), draw.normal(*shape, d_k), draw.normal(*shape, d_v)


def whole(n, block):
    """Plan every tile."""
    starts = range(0, n, block)
    return [(i, min(i + block, n), [(j, min(j + block, n), None) for j in starts]) for i in starts]


def band(n, reach, block):
    """Plan the pairs within reach of each other, and in whole tiles what is near them."""
    places, plan = torch.arange(n), []
    near = (places.unsqueeze(-1) - places).abs() <= reach
    for i in range(0, n, block):
        rows = near[i : i + block]
        tiles = [(j, min(j + block, n), rows[:, j : j + block]) for j in range(0, n, block)]
        plan.append((i, min(i + block, n), [tile for tile in tiles if tile[2].any()]))
    return plan


@exercise.cases
def cases(draw: Draw):
    yield "one tile", (*words(draw, 3, d_k=2, d_v=4), whole(3, 3))
    yield "two by two tiles", (*words(draw, 4, d_k=3, d_v=2), whole(4, 2))
    yield "a last tile that is smaller", (*words(draw, 7, d_k=3, d_v=4), whole(7, 3))
    hidden = [(0, 2, [(2, 4, None), (0, 2, HIDE_FIRST)])]
    yield "a mask in the second tile", (*words(draw, 4, d_k=2, d_v=3), hidden)
    first = [(0, 2, [(0, 2, HIDE_FIRST), (2, 4, None)])]
    yield "a first tile that hides all from a query", (*words(draw, 4, d_k=2, d_v=3), first)
    yield "a window", (*words(draw, 7, d_k=3, d_v=2), band(7, 1, 3))
    yield "a batch of texts", (*words(draw, 2, 8, d_k=3, d_v=5), band(8, 2, 4))
    yield "two batch dimensions", (*words(draw, 3, 2, 5, d_k=2, d_v=4), whole(5, 2))
    yield "one token", (*words(draw, 1, d_k=3, d_v=2), whole(1, 2))
    yield "as many tokens as each has numbers", (*words(draw, 4, d_k=4, d_v=2), whole(4, 2))
    more = [(0, 3, [(0, 2, None), (2, 5, None)])]
    yield "more keys than queries", (draw.normal(3, 2), draw.normal(5, 2), draw.normal(5, 4), more)


@exercise.edges
def edges(draw: Draw):
    in_turn = [(0, 2, [(0, 2, HIDE_FIRST), (2, 4, HIDE_FIRST.flip(0))])]
    yield "no tile that shows something to each query", (*words(draw, 4, d_k=2, d_v=3), in_turn)


@exercise.requires("tiles in another order give the same", points=2)
def any_order(answer, draw: Draw):
    q, k, v = words(draw, 9, d_k=3, d_v=2)
    plan = band(9, 2, 3)
    back = [(start, stop, tiles[::-1]) for start, stop, tiles in plan]
    found = answer(q, k, v, plan)
    return found.std() > 0 and torch.allclose(found, answer(q, k, v, back), atol=1e-5)


@exercise.requires("scores far below zero give right results, whichever tile comes first")
def far_below(answer, draw: Draw):
    q, k, v = 1 + draw.normal(4, 2).abs(), -1000 - draw.normal(4, 2).abs(), draw.normal(4, 3)
    places = torch.arange(4)
    far = (places.unsqueeze(-1) - places).abs() > 1
    # so far that 1e9 is not, nor 1e30: what is hidden must be below them as well
    further = 1e35 * draw.normal(4).argsort().add(1).unsqueeze(-1)
    for lowered, dtype in ((0, torch.float32), (further, torch.float32), (1e10, torch.float64)):
        inputs = q.to(dtype), k.to(dtype) - lowered, v.to(dtype)
        scores = inputs[0] @ inputs[1].mT / 2**0.5
        for plan, seen in (
            (whole(4, 2), scores),
            (band(4, 1, 2), scores.masked_fill(far, -torch.inf)),
        ):
            right = torch.softmax(seen, -1) @ inputs[2]
            if not torch.allclose(answer(*inputs, plan), right, atol=1e-3):
                return False
    return True


def loop(q, k, v, plan, **change):
    """Go through the plan, in as many ways as there are mistakes."""
    rows = []
    for start, stop, tiles in plan:
        queries = q[..., start:stop, :] / q.shape[-1] ** 0.5
        peak = torch.full_like(queries[..., :1], change.get("peak", torch.finfo(q.dtype).min))
        total = output = 0.0
        for first, last, mask in tiles:
            scores = queries @ k[..., first:last, :].mT
            if mask is not None:
                scores = scores.masked_fill(~mask, change.get("hidden", -torch.inf))
            risen = torch.maximum(peak, scores.amax(-1, keepdim=True))
            shrink, weights = (peak - risen).exp(), (scores - risen).exp()
            if change.get("zero_for_nan"):
                shrink, weights = shrink.nan_to_num(), weights.nan_to_num()
            total = (1 if change.get("total_stays") else shrink) * total
            total = total + weights.sum(-1, keepdim=True)
            output = shrink * output + weights @ v[..., first:last, :]
            peak = risen
        rows.append(output / total)
    return torch.cat(rows, dim=-2)


@exercise.hand_out
def from_minus_infinity(q, k, v, plan):
    """The fault was the first maximum: minus infinity. A query that sees nothing in its first tile
    keeps it, and minus infinity less minus infinity is not a number. The lowest finite number is
    below every score too."""
    rows = []
    for start, stop, tiles in plan:
        queries = q[..., start:stop, :] / q.shape[-1] ** 0.5
        # begin with a maximum below every score, and with empty sums
        peak = torch.full_like(queries[..., :1], -torch.inf)
        total, output = 0.0, 0.0
        for first, last, mask in tiles:
            # score one tile, and hide what its mask hides
            scores = queries @ k[..., first:last, :].mT
            if mask is not None:
                scores = scores.masked_fill(~mask, -torch.inf)
            # raise the maximum, and rescale what was summed before
            risen = torch.maximum(peak, scores.amax(-1, keepdim=True))
            shrink, weights = (peak - risen).exp(), (scores - risen).exp()
            total = shrink * total + weights.sum(-1, keepdim=True)
            output = shrink * output + weights @ v[..., first:last, :]
            peak = risen
        rows.append(output / total)
    return torch.cat(rows, dim=-2)


@exercise.mistake
def from_zero(q, k, v, plan):
    """The maximum begins at a number now, such as 0, and scores far below it all have the
    exponential 0: their row divides 0 by 0. Which number is below every score?"""
    return loop(q, k, v, plan, peak=0.0)


@exercise.mistake
def hidden_at_zero(q, k, v, plan):
    """Hidden pairs have the score 0 now, and its exponential weighs. The mask was right: what was
    wrong is the first maximum."""
    return loop(q, k, v, plan, hidden=0.0)


@exercise.mistake
def total_stays(q, k, v, plan):
    """The sum of exponentials is no longer rescaled when the maximum rises. By which maximum was it
    measured?"""
    return loop(q, k, v, plan, total_stays=True)


@exercise.alternative
def whole_row_at_once(q, k, v, plan):
    rows = []
    for start, stop, tiles in plan:
        queries = q[..., start:stop, :] * q.shape[-1] ** -0.5
        scores, values = [], []
        for first, last, mask in tiles:
            some = queries @ k[..., first:last, :].mT
            scores.append(some if mask is None else some.masked_fill(~mask, -torch.inf))
            values.append(v[..., first:last, :])
        rows.append(torch.softmax(torch.cat(scores, -1), -1) @ torch.cat(values, -2))
    return torch.cat(rows, dim=-2)
