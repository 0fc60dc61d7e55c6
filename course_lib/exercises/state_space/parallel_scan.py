"""The same recurrence, in a number of rounds that is the logarithm of the length."""

import torch
from torch.nn import functional as F

from course_lib.answers.watch import TooManyCalls
from course_lib.beyond import parallel_scan
from course_lib.checking.exercise import Draw, Exercise

# 16 rounds; a loop over the tokens takes 100,000 operations, and one over blocks of them 1,000
LONG, CALLS = 50_000, 600

exercise = Exercise(
    reference=parallel_scan,
    lesson="15_scan",
    title="The same in log n rounds",
    minutes=20,
    difficulty=3,
    hints=(
        "Two steps, h -> a1 h + b1 and then h -> a2 h + b2: which single step does what both do? "
        "Write its decay and what it adds.",
        "Let every place hold the step that it is. Join each with the place before it, all at "
        "once: how many tokens does each place stand for now? And which place should be joined "
        "next?",
        "The first places have nothing before them. Which decay, and which addition, is a step "
        "that changes nothing?",
    ),
    clauses={
        "A stretch of steps": "decays_not_joined",
        "In round r each place": "one_further_each_round",
        "in O(log n) calls of torch": "token_by_token",
        "a decay may be 0": "a decay of 0",
    },
    forbidden=("course_lib.beyond.scan",),
    # a round more, where there is one, has nothing before it and changes nothing; before the first
    # token all is 0, whatever it decays by
    equivalent=("n - 1 -> n", "1 -> 0", "1.0 -> 2.0", "1.0 -> 0.0"),
)


@exercise.cases
def cases(draw: Draw):
    yield "two tokens", (draw.normal(2, 3), draw.normal(2, 3))
    yield "four tokens", (draw.normal(4, 2), draw.normal(4, 2))
    yield "five tokens", (draw.normal(5, 3), draw.normal(5, 3))
    yield "as many tokens as numbers", (draw.normal(3, 3), draw.normal(3, 3))
    a = torch.rand(7, 3, generator=torch.Generator().manual_seed(draw.number(0, 1000)))
    a[2] = 0
    yield "a decay of 0 forgets everything", (a, draw.normal(7, 3))
    yield "one token", (draw.normal(1, 4), draw.normal(1, 4))
    yield "a batch of texts", (draw.normal(3, 6, 2), draw.normal(3, 6, 2))
    yield "two batch dimensions", (draw.normal(2, 3, 9, 4), draw.normal(2, 3, 9, 4))


@exercise.requires("50,000 tokens take at most 600 operations of torch, and are right", points=3)
def few_rounds(answer, draw: Draw):
    a, b = 1 - draw.normal(LONG, 2).abs().clamp(max=1), draw.normal(LONG, 2)
    # Python's lists count too; what is padded may be twice as long, a step a matrix of 2 x 2
    found = answer(a, b, max_calls=CALLS, max_numel=16 * LONG)
    return torch.allclose(found, parallel_scan(a, b), atol=1e-4)


@exercise.requires("with every decay 1 it is a running sum, with every decay 0 it is what came in")
def ends(answer, draw: Draw):
    b = draw.normal(11, 3)
    total, last = answer(torch.ones_like(b), b), answer(torch.zeros_like(b), b)
    return torch.allclose(total, b.cumsum(0), atol=1e-4) and torch.equal(last, b)


def rounds(a, b, before=1.0, grow=lambda reach: 2 * reach, keep_a=False, swap=False):
    n, reach = b.shape[-2], 1
    while reach < n:
        before_a = F.pad(a[..., :-reach, :], (0, 0, reach, 0), value=before)
        before_b = F.pad(b[..., :-reach, :], (0, 0, reach, 0))
        b = before_a * b + before_b if swap else a * before_b + b
        a = a if keep_a else a * before_a
        reach = grow(reach)
    return b


@exercise.mistake(raises=TooManyCalls)
def token_by_token(a, b):
    """Right, but there are as many rounds as tokens. Join all pairs of neighbours in one call, then
    stretches of two, then of four: how many rounds is that?"""
    state, states = torch.zeros_like(b[..., 0, :]), []
    for t in range(b.shape[-2]):
        state = a[..., t, :] * state + b[..., t, :]
        states.append(state)
    return torch.stack(states, dim=-2)


@exercise.mistake
def decays_not_joined(a, b):
    """The decays were not joined: after the first round a place stands for two tokens, and its
    decay is the product of both."""
    return rounds(a, b, keep_a=True)


@exercise.mistake
def a_updated_first(a, b):
    """The decays were joined before what is added, which then met the new decays. Both are made of
    the old ones: what must be computed before `a` is overwritten?"""
    n, reach = b.shape[-2], 1
    while reach < n:
        a = a * F.pad(a[..., :-reach, :], (0, 0, reach, 0), value=1.0)
        b = a * F.pad(b[..., :-reach, :], (0, 0, reach, 0)) + b
        reach *= 2
    return b


@exercise.mistake
def one_round_too_few(a, b):
    """The last round is missing: the reach is 1, 2, 4, and so on as long as it is below n. How many
    rounds do two tokens need?"""
    n, reach = b.shape[-2], 1
    while 2 * reach < n:
        before_a = F.pad(a[..., :-reach, :], (0, 0, reach, 0), value=1.0)
        before_b = F.pad(b[..., :-reach, :], (0, 0, reach, 0))
        a, b, reach = a * before_a, a * before_b + b, 2 * reach
    return b


@exercise.mistake
def wrong_order(a, b):
    """The two steps were joined in the wrong order: what the earlier one left is multiplied by the
    decay of the later one."""
    return rounds(a, b, swap=True)


@exercise.mistake
def one_round(a, b):
    """Only neighbours were joined, so each state has seen two tokens. What should the second round
    join?"""
    return rounds(a, b, grow=lambda reach: 10**9)


@exercise.mistake(raises=TooManyCalls)
def one_further_each_round(a, b):
    """The reach grows by one in each round, and the stretches double: 1, 2, 4, 8. Some tokens were
    joined twice. How long is every stretch after a round?"""
    return rounds(a, b, grow=lambda reach: reach + 1)


@exercise.mistake
def three_times(a, b):
    """The reach is tripled, but the stretches are only twice as long after a round: tokens between
    them are left out."""
    return rounds(a, b, grow=lambda reach: 3 * reach)


@exercise.mistake
def closed_form(a, b):
    """In closed form, h_t is the product of all decays times a sum of b_t divided by such products.
    A decay of 0 makes this 0 divided by 0, and a long text makes the products too small for a
    float."""
    products = a.cumprod(-2)
    return products * (b / products).cumsum(-2)


@exercise.mistake
def rolled(a, b):
    """`torch.roll` brings the last places round to the front, so the first tokens have read the end
    of the text. What is before the first token?"""
    n, reach = b.shape[-2], 1
    while reach < n:
        b = b + a * b.roll(reach, dims=-2)
        a = a * a.roll(reach, dims=-2)
        reach = 2 * reach
    return b


@exercise.alternative
def with_halves(a, b):
    n = b.shape[-2]
    reach = 1
    while reach < n:
        joined = a[..., reach:, :] * b[..., :-reach, :] + b[..., reach:, :]
        b = torch.cat([b[..., :reach, :], joined], dim=-2)
        a = torch.cat([a[..., :reach, :], a[..., reach:, :] * a[..., :-reach, :]], dim=-2)
        reach += reach
    return b


@exercise.alternative
def padded_then_cut(a, b):
    n, reach = a.shape[-2], 1
    while reach < n:
        before_a, before_b = (
            F.pad(x, (0, 0, reach, 0), value=value)[..., :n, :] for x, value in ((a, 1.0), (b, 0.0))
        )
        a, b, reach = a * before_a, a * before_b + b, 2 * reach
    return b


@exercise.alternative
def by_recursion(a, b):
    n = b.shape[-2]
    if n == 1:
        return b
    odd_a, odd_b = a[..., 1::2, :], b[..., 1::2, :]
    even_a, even_b = a[..., : n - 1 : 2, :], b[..., : n - 1 : 2, :]
    odd = by_recursion(odd_a * even_a, odd_a * even_b + odd_b)
    before = torch.cat([torch.zeros_like(odd[..., :1, :]), odd], dim=-2)[..., : (n + 1) // 2, :]
    even = a[..., ::2, :] * before + b[..., ::2, :]
    both = torch.stack([even[..., : odd.shape[-2], :], odd], dim=-2).flatten(-3, -2)
    return torch.cat([both, even[..., odd.shape[-2] :, :]], dim=-2)
