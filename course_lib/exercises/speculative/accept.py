"""Which drafted tokens may stay, and what the next one is drawn from."""

import torch

from course_lib.beyond import accept
from course_lib.checking.exercise import GIVEN, Draw, Exercise

exercise = Exercise(
    reference=accept,
    lesson="15_drafts",
    title="Accept a draft, and keep the distribution",
    minutes=15,
    difficulty=3,
    hints=(
        "For each drafted token, two probabilities matter: the draft's and the target's, both of "
        "this very token. How do you look up one number in each row?",
        "Tokens after the first refusal do not count, even if they would pass. Which running "
        "product, or running minimum, of zeros and ones says that?",
        "After a refusal, draw only from what the draft has offered too rarely. Where the draft "
        "offered a token too often, is there anything left to add?",
    ),
    no_edge={"a row of zeros": "a row of probabilities sums to 1"},
    clauses={
        "Token x_i was drawn": GIVEN,
        "target_i is what the large model says": GIVEN,
        "It is accepted while": "wrong_way_round",
        "the first refusal ends it": "all_that_pass",
        "divided by its sum": "not_normalised",
        "the last row of target": "last_row_of_the_draft",
        "is distributed as the large model's own": "over all drafts",
    },
    # tokens are in one row: its first axis is its last one
    equivalent=("0 -> -1",),
    no_gradient="nobody trains through it: a count has none, and an answer may detach the rest",
)


def distributions(draw: Draw, rows: int, vocab: int):
    return (1.5 * draw.normal(rows, vocab)).softmax(-1)


def drafts(draw: Draw, m: int, vocab: int) -> tuple:
    """Draw tokens from drafts, targets that are like them, and uniform numbers."""
    draft = distributions(draw, m, vocab)
    target = torch.cat([draft, distributions(draw, 1, vocab)]) * distributions(draw, m + 1, vocab)
    seed = torch.Generator().manual_seed(draw.number(0, 10**6))
    drafted = torch.multinomial(draft, 1, generator=seed)[:, 0]
    return drafted, draft, target / target.sum(-1, keepdim=True), torch.rand(m, generator=seed)


@exercise.cases
def cases(draw: Draw):
    yield "one token", drafts(draw, 1, 3)
    yield "two tokens", drafts(draw, 2, 4)
    for i in range(4):
        yield f"four tokens, draw {i + 1}", drafts(draw, 4, 5)
    yield "as many tokens as the vocabulary has", drafts(draw, 3, 3)
    drafted, draft, target, uniform = drafts(draw, 5, 4)
    yield "nothing is refused", (drafted, draft, target, 0 * uniform)
    yield "the first token is refused", (drafted, draft, target.flip(-1), uniform + 100)
    uniform[:] = 0
    uniform[2] = 100
    yield "the third token alone is refused", (drafted, draft, target, uniform)
    only = torch.eye(6)[[4, 1, 0]]
    target = distributions(draw, 4, 6)
    yield (
        "a draft that is sure of itself",
        (torch.tensor([4, 1, 0]), only, target, torch.tensor([0.5, 0.1, 0.9]) * target.amax()),
    )
    target = target.clone()
    target[1, 1] = 0
    yield (
        "a token that the target never says",
        (torch.tensor([4, 1, 0]), only, target, torch.zeros(3)),
    )


@exercise.edges
def edges(draw: Draw):
    none = torch.zeros(0, dtype=torch.long), torch.zeros(0, 4)
    yield "no drafted token", (*none, distributions(draw, 1, 4), torch.zeros(0))
    # shares whose quotients are exact; the second token is refused too
    even = torch.tensor([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]])
    less = torch.tensor([[0.25, 0.5, 0.25], [0.375, 0.125, 0.5]])
    less = torch.cat([less, distributions(draw, 1, 3)])
    yield "a number equal to the quotient", (
        torch.tensor([0, 0]), even, less, torch.tensor([0.5, 0.8]),
    )  # fmt: skip
    even, far = torch.full((1, 4), 0.25), distributions(draw, 1, 4)
    near = even + torch.tensor([[-2.0, 1, 3, -2]])[:, draw.normal(4).argsort()] * 2.0**-20
    yield "a draft that is nearly the target", (
        near[0].argmin()[None], even, torch.cat([near, far]), torch.tensor([1 - 2.0**-20]),
    )  # fmt: skip


@exercise.requires("over all drafts and uniform numbers, the next token is the target's", points=3)
def distribution_kept(answer, draw: Draw):
    cells, vocab = 50, 4
    # shares of whole cells, so that a grid of uniform numbers counts exactly
    cuts = torch.tensor([sorted(draw.integers(1, cells, 3).tolist()) for _ in range(3)])
    ends = torch.cat([torch.zeros(3, 1), cuts, torch.full((3, 1), cells)], 1)
    draft, *target = ends.diff().double() / cells
    total = torch.zeros(vocab, dtype=torch.float64)
    grid = 200
    for token in range(vocab):
        for place in range(grid):
            uniform = torch.tensor([(place + 0.5) / grid], dtype=torch.float64)
            drafted = torch.tensor([token])
            count, rest = answer(drafted, draft[None], torch.stack(target), uniform)
            first = torch.eye(vocab, dtype=torch.float64)[token] if count else rest
            total += draft[token] / grid * first
    return (total - target[0]).abs().max() < 1.5 / grid


def judged(drafted, draft, target, uniform, test=None, rest=None, runs=None):
    count = 0
    for i, token in enumerate(drafted.tolist()):
        wanted, offered = target[i, token], draft[i, token]
        if not (test(uniform[i], wanted, offered) if test else uniform[i] * offered < wanted):
            break
        count += 1
    if count == len(drafted):
        return count, target[count]
    if rest:
        return count, rest(target[count], draft[count])
    missing = (target[count] - draft[count]).clamp(min=0)
    return count, missing / missing.sum()


@exercise.mistake
def target_after_a_refusal(drafted, draft, target, uniform):
    """After a refusal the next token was drawn from the target itself. What the draft offers often
    has had its chance: the text would have too much of it."""
    return judged(drafted, draft, target, uniform, rest=lambda p, q: p)


@exercise.mistake
def not_normalised(drafted, draft, target, uniform):
    """The rest is not divided by its sum, so these are no probabilities."""
    return judged(drafted, draft, target, uniform, rest=lambda p, q: (p - q).clamp(min=0))


@exercise.mistake
def negative_probabilities(drafted, draft, target, uniform):
    """Differences below 0 were not cut off: there are negative probabilities where the draft offers
    a token too often."""
    return judged(drafted, draft, target, uniform, rest=lambda p, q: (p - q) / (p - q).abs().sum())


@exercise.mistake
def wrong_way_round(drafted, draft, target, uniform):
    """The difference is the wrong way round: draw from where the *target* wants more than the
    draft."""

    def rest(p, q):
        return (q - p).clamp(min=0) / (q - p).clamp(min=0).sum()

    return judged(drafted, draft, target, uniform, rest=rest)


@exercise.mistake
def upside_down(drafted, draft, target, uniform):
    """The quotient is upside down: a token is safe where the target finds it *likelier* than the
    draft."""
    return judged(drafted, draft, target, uniform, test=lambda u, p, q: u * p < q)


@exercise.mistake
def equal_is_accepted(drafted, draft, target, uniform):
    """A number equal to the quotient was accepted. Where the target never says a token the quotient
    is 0, and a uniform number may be 0 as well: what must happen then?"""
    return judged(drafted, draft, target, uniform, test=lambda u, p, q: u * q <= p)


@exercise.mistake
def not_divided(drafted, draft, target, uniform):
    """A token was accepted where the target's probability alone is above the uniform number. It has
    already been drawn by the draft: by which probability is that to be divided?"""
    return judged(drafted, draft, target, uniform, test=lambda u, p, q: u < p)


@exercise.mistake
def without_chance(drafted, draft, target, uniform):
    """A token was accepted if the target finds it at least as likely as the draft, and never
    otherwise: what are the uniform numbers for?"""
    return judged(drafted, draft, target, uniform, test=lambda u, p, q: q <= p)


@exercise.mistake
def all_that_pass(drafted, draft, target, uniform):
    """Every token that passes was counted, those after a refusal too. They follow a token that is
    not in the text."""
    rows = torch.arange(len(drafted))
    passes = uniform * draft[rows, drafted] < target[rows, drafted]
    _, rest = judged(drafted, draft, target, uniform)
    return int(passes.sum()), rest


@exercise.mistake
def all_that_pass_and_their_rest(drafted, draft, target, uniform):
    """Every token that passes was counted, those after a refusal too, and the next distribution was
    taken at that count. The first refusal ends the draft."""
    rows = torch.arange(len(drafted))
    count = int((uniform * draft[rows, drafted] < target[rows, drafted]).sum())
    if count == len(drafted):
        return count, target[count]
    missing = (target[count] - draft[count]).clamp(min=0)
    return count, missing / missing.sum()


@exercise.mistake(raises=IndexError)
def last_row_of_the_draft(drafted, draft, target, uniform):
    """Where nothing was refused, the draft's last row was used again. The large model has one row
    more than the draft: what is it for?"""
    count, rest = judged(drafted, draft, target, uniform)
    return count, draft[-1] if count == len(drafted) else rest


@exercise.mistake
def one_place_later(drafted, draft, target, uniform):
    """The distribution is that of the place after the refusal. The refused token is to be replaced,
    at its own place."""
    count, rest = judged(drafted, draft, target, uniform)
    if count == len(drafted):
        return count, rest
    last = min(count + 1, len(drafted) - 1)
    missing = (target[last] - draft[last]).clamp(min=0)
    return count, missing / missing.sum()


@exercise.mistake
def refused_is_counted(drafted, draft, target, uniform):
    """The refused token was counted as accepted."""
    count, rest = judged(drafted, draft, target, uniform)
    return min(count + 1, len(drafted)), rest


@exercise.alternative
def one_by_one(drafted, draft, target, uniform):
    return judged(drafted, draft, target, uniform)


@exercise.alternative
def by_gathering(drafted, draft, target, uniform):
    with torch.no_grad():
        ratio = (target[:-1] / draft).gather(1, drafted[:, None])[:, 0]
        refused = torch.where(uniform >= ratio)[0].tolist()
        count = refused[0] if refused else drafted.shape[0]
        # a draft of zeros below the last row: nothing is offered there
        offered = torch.cat([draft, torch.zeros_like(target[:1])])
        missing = torch.relu(target[count] - offered[count])
        return count, missing / missing.sum() if refused else target[count]
