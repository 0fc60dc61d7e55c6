"""A test that any layer can be put to: does it read ahead, and where?"""

import torch

from course_lib.answers.answer import Probe
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.masks import leaks_future

DRAWN = "torch.rand(x.shape, generator=torch.Generator().manual_seed(0))"

exercise = Exercise(
    reference=leaks_future,
    lesson="05",
    title="Who has read ahead?",
    minutes=15,
    difficulty=3,
    hints=(
        "You cannot look into the layer; you can only feed it tokens and read its states. How "
        "would you find out whether the state of token 2 knows anything of token 5?",
        "Moving token 5 always moves its own state, and may move those after it. The states of "
        "which positions show that the layer leaks? Is one token to be tried, or each?",
        "A state is a row of numbers, and there may be many sentences. How many of these numbers "
        "must move for the position to count?",
    ),
    clauses={
        "A causal layer gives the empty list": "past_instead",
        "is never in it": "itself_included",
        "`layer` takes tokens": GIVEN,
        "once up and once down": "up_only",
        "neither a norm nor a ReLU": "a norm before the average",
        "no more than rounding error": "bit_by_bit",
        "stays NaN": "nan_moves",
    },
    equivalent=(
        # how far a token moves, and which way, is free
        f"10 + 10 * {DRAWN} -> 10 * {DRAWN}",
        f"10 + 10 * {DRAWN} -> 10 - 10 * {DRAWN}",
        f"10 * {DRAWN} -> {DRAWN}",
        f"10 * {DRAWN} -> 10 / {DRAWN}",
        "10 -> 9",
        "10 -> 11",
        # and so are the numbers that are drawn
        "0 -> 1",
        "0 -> -1",
        "torch.Generator().manual_seed(0) -> torch.Generator()",
        # the first token is in nobody's future, and what is added in place changes no type
        "1 -> 0",
        "step[..., token, :].to(x) -> step[..., token, :]",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "every token sees all", (Probe("whole_mean"), draw.normal(3, 2))
    yield "a causal layer", (Probe("running_mean"), draw.normal(4, 3))
    yield "one token", (Probe("whole_mean"), draw.normal(1, 3))
    yield "each token sees the next", (Probe("ahead", (1,)), draw.normal(5, 2))
    yield "each token sees the next but one", (Probe("ahead", (2,)), draw.normal(5, 3))
    yield "one position sees one later token", (Probe("one_leak", (1, 3)), draw.normal(2, 5, 4))
    yield "one position sees an earlier token", (Probe("one_leak", (3, 1)), draw.normal(5, 2))
    second = draw.normal(2, 3, 4).abs()
    second[0] *= -1
    yield "a leak in the second sentence alone", (Probe("opened_by_first_word"), second)
    yield "a leak in the last column alone", (Probe("mean_in_last_column"), draw.normal(4, 3))
    low = -0.01 * draw.normal(4, 3).abs() - 0.01
    yield "a leak that only moving up shows", (Probe("next_above_zero", (1,)), low)
    yield "a leak that only moving down shows", (Probe("next_above_zero", (-1,)), -low)
    yield "two batch dimensions", (Probe("ahead", (1,)), draw.normal(2, 3, 4, 2))
    yield "tokens of 64 bits", (Probe("ahead", (3,)), draw.normal(5, 3).double())
    yield "as many tokens as each has numbers", (Probe("ahead", (1,)), draw.normal(4, 4))
    yield "a norm before the average", (Probe("mean_of_centred"), draw.normal(4, 3))
    yield "a causal layer that rounds", (Probe("rounded_by_later"), draw.normal(3, 50))
    yield "a causal layer whose first state is NaN", (Probe("first_is_nan"), draw.normal(4, 3))
    yield "two leaks that cancel in a sum", (Probe("mean_and_its_opposite"), draw.normal(4, 3))


@exercise.edges
def edges(draw: Draw):
    spoiled = Probe("nan_before_negative")
    yield "states that become NaN", (spoiled, 0.1 + draw.normal(4, 3).abs())
    yield "a leak beside a column of NaN", (Probe("mean_beside_nan"), draw.normal(4, 3))
    yield "a leak in small states", (Probe("whole_mean", (1e-4,)), draw.normal(3, 2))
    yield "a causal layer with weights", (Probe("linear", (3, 2)), draw.normal(4, 3))


@exercise.requires("where each token sees k places ahead, all but the last k positions leak")
def as_far_as_it_sees(answer, draw: Draw):
    x = draw.normal(6, 3)
    found = [answer(Probe("ahead", (k,)), x) for k in range(1, 6)]
    return found == [list(range(6 - k)) for k in range(1, 6)]


@exercise.requires("a causal layer leaks nowhere, one that sees all everywhere but at the end")
def causal_or_not(answer, draw: Draw):
    x = draw.normal(2, 5, 3)
    found = [answer(Probe(name), x) for name in ("running_mean", "whole_mean")]
    return found == [[], [0, 1, 2, 3]]


@exercise.requires("of all single leaks, exactly those from a later token are found")
def single_leaks(answer, draw: Draw):
    x = draw.normal(3, 2)
    pairs = [(position, word) for position in range(3) for word in range(3)]
    found = [answer(Probe("one_leak", pair), x) for pair in pairs]
    return found == [[position] * (position < word) for position, word in pairs]


def is_moved(state, before, equal_nan=True):
    return ~torch.isclose(state, before, rtol=1e-4, atol=1e-6, equal_nan=equal_nan)


def moved_by(layer, x, word, moved=is_moved, ways=(1, -1)):
    """Tell which numbers of the states have `moved` when one token does, up, down or both ways."""
    far, before = torch.zeros_like(x), layer(x)
    far[..., word, :] = 10 + torch.rand_like(x[..., word, :])
    return torch.stack([moved(layer(x + way * far), before) for way in ways]).any(0)


def at_positions(moved):
    """Tell which positions move, in any sentence and any column."""
    return moved.any(-1).reshape(-1, moved.shape[-2]).any(0)


def leaking(layer, x, words=None, seen=at_positions, moves=is_moved, ways=(1, -1)):
    """List the leaks as the reference does, with one thing done otherwise."""
    n = x.shape[-2]
    moved = torch.zeros(n, n, dtype=torch.bool)
    for word in range(1, n) if words is None else words:
        moved[:, word] = seen(moved_by(layer, x, word, moves, ways))
    return moved.triu(1).any(-1).nonzero().flatten().tolist()


@exercise.mistake
def nothing_found(layer, x):
    """No leak was ever found, not even in an average of all tokens. Are the two states that you
    compare made of different tokens, by more than rounding? After `c = x`, both are one tensor."""
    return []


@exercise.mistake
def next_word_only(layer, x):
    """Each position was tried on the next token alone. Some layers skip it and see the one after:
    which tokens are the future of a position?"""
    n = x.shape[-2]
    return [word - 1 for word in range(1, n) if at_positions(moved_by(layer, x, word))[word - 1]]


@exercise.mistake
def last_word_only(layer, x):
    """Only the last token was moved. A layer that sees two places ahead shows nothing of it in the
    first positions: which tokens are the future of those?"""
    return leaking(layer, x, words=[x.shape[-2] - 1])


@exercise.mistake
def first_sentence_only(layer, x):
    """A leak in the second sentence alone was missed. A position counts as soon as it moves in any
    sentence of the batch: how are the sentences put together?"""
    return leaking(layer, x, seen=lambda moved: moved.reshape(-1, *moved.shape[-2:])[0].any(-1))


@exercise.mistake
def first_column_only(layer, x):
    """A leak in the last column alone was missed. A position counts as soon as any number of its
    state moves: how are the columns put together?"""
    return leaking(layer, x, seen=lambda moved: at_positions(moved[..., :1]))


@exercise.mistake
def differences_added(layer, x):
    """The differences of a state were added up, and two that are opposite make 0. A position counts
    as soon as any number of its state moves: what comes first, the size or the sum?"""

    def moved(state, before):
        return ((state - before).nan_to_num().sum(-1, keepdim=True).abs() > 1e-4).expand_as(state)

    return leaking(layer, x, moves=moved)


@exercise.mistake
def any_position(layer, x):
    """Even a causal layer is said to leak. When a token moves, its own state moves, and those after
    it may: which positions are to its left?"""
    words = range(x.shape[-2])
    moved = torch.stack([at_positions(moved_by(layer, x, word)) for word in words])
    return moved.any(0).nonzero().flatten().tolist()


@exercise.mistake
def itself_included(layer, x):
    """Positions were listed for seeing their own tokens, which they may. Counted from 0, which
    positions are left of token j: how many, and is j one of them?"""
    n = x.shape[-2]
    moved = torch.stack([at_positions(moved_by(layer, x, word)) for word in range(n)])
    return moved[1:].tril(1).any(0).nonzero().flatten().tolist()


def moving_on(layer, x, step):
    before, leaks = layer(x), set()
    for word in range(1, x.shape[-2]):
        x[..., word, :] += step(x[..., word, :])
        moved = at_positions(~torch.isclose(layer(x), before, atol=1e-6, equal_nan=True))
        leaks.update(moved[:word].nonzero().flatten().tolist())
    return sorted(leaks)


@exercise.mistake
def not_a_copy(layer, x):
    """The tokens that were moved first stayed moved, so later on it could not be told who moved
    what. Each token is to be tried alone: after `c = x` there are two names, and no copy."""
    return moving_on(layer, x, torch.randn_like)


@exercise.mistake
def not_a_copy_by_a_constant(layer, x):
    """The tokens that were moved first stayed moved, so later on it could not be told who moved
    what. Each token is to be tried alone: after `c = x` there are two names, and no copy."""
    return moving_on(layer, x, torch.ones_like)


@exercise.mistake
def past_instead(layer, x):
    """These are the positions that see their past, which they may. On which side of the token that
    was moved does a leak show?"""
    n = x.shape[-2]
    moved = torch.stack([at_positions(moved_by(layer, x, word)) for word in range(n)])
    return moved.triu(1).any(0).nonzero().flatten().tolist()


@exercise.mistake
def words_instead(layer, x):
    """These are the tokens that are seen too early. Asked for are the positions that see them."""
    n = x.shape[-2]
    moved = torch.stack([at_positions(moved_by(layer, x, word)) for word in range(n)])
    return moved.tril(-1).any(1).nonzero().flatten().tolist()


@exercise.mistake
def first_leak_only(layer, x):
    """The search ended at the first leak. Is there a `return` inside a loop? All positions are
    asked for."""
    return leaking(layer, x)[:1]


@exercise.mistake
def up_only(layer, x):
    """Each token was moved up, and not down. Where a ReLU is closed, moving up may not open it: a
    leak that only moving down shows was missed."""
    return leaking(layer, x, ways=(1,))


@exercise.mistake
def down_only(layer, x):
    """Each token was moved down, and not up. Where a ReLU is closed, moving down may not open it:
    a leak that only moving up shows was missed."""
    return leaking(layer, x, ways=(-1,))


@exercise.mistake
def by_a_constant(layer, x):
    """Every entry of a token was moved by the same amount, or a gradient added them up. A layer
    that begins with a norm sees how the entries differ: how can these be moved apart?"""
    leaks = set()
    for word in range(1, x.shape[-2]):
        for step in (10, -10):
            changed = x.clone()
            changed[..., word, :] += step
            moved = ~torch.isclose(layer(changed), layer(x), atol=1e-5, equal_nan=True)
            leaks.update(at_positions(moved)[:word].nonzero().flatten().tolist())
    return sorted(leaks)


@exercise.mistake
def bit_by_bit(layer, x):
    """States that moved by no more than rounding were convicted: the same sum in another order has
    other last digits. Which function of torch's asks whether two numbers are nearly equal?"""
    return leaking(layer, x, moves=torch.ne)


@exercise.mistake
def nan_moves(layer, x):
    """A state that was NaN and still is was taken to have moved: NaN equals nothing, not even
    itself. What does `torch.isclose` say of two NaNs, and by which argument can that be changed?"""
    return leaking(layer, x, moves=lambda *states: is_moved(*states, equal_nan=False))


@exercise.mistake
def becoming_nan_rests(layer, x):
    """A state that becomes NaN was taken for one that rests: NaN is never larger than anything, so
    that |after - before| > 1e-5 is False for it. Which of NaN's ways to be there is no move?"""

    def moves(state, before):
        return (state - before).abs() > 1e-5 * (1 + before.abs())

    return leaking(layer, x, moves=moves)


@exercise.mistake
def exchanged(layer, x):
    """The later tokens changed places among themselves. An average of all tokens does not notice
    that: what would it notice?"""
    n, before = x.shape[-2], layer(x)
    leaks = []
    for i in range(n - 1):
        changed = torch.cat([x[..., : i + 1, :], x[..., i + 1 :, :].flip(-2)], dim=-2)
        if not torch.allclose(
            layer(changed)[..., i, :], before[..., i, :], atol=1e-6, equal_nan=True
        ):
            leaks.append(i)
    return leaks


@exercise.mistake
def words_on_the_first_axis(layer, x):
    """Right for one sentence, not for a batch: the first axis was taken for that of the tokens, so
    whole sentences were moved. Which axis from the end are the tokens on?"""
    before, leaks = layer(x), set()
    for word in range(len(x)):
        changed = x.clone()
        changed[word] += torch.randn_like(x[word])
        rests = torch.isclose(layer(changed), before, atol=1e-6, equal_nan=True)
        moved = ~rests.reshape(len(x), -1).all(-1)
        leaks.update(moved[:word].nonzero().flatten().tolist())
    return sorted(leaks)


@exercise.mistake
def counted_from_one(layer, x):
    """The positions are counted from 1. The docstring counts them from 0, as Python does."""
    return [position + 1 for position in leaking(layer, x)]


@exercise.mistake
def falling(layer, x):
    """The right positions, in falling order. Which function of Python's puts a list in order?"""
    return leaking(layer, x)[::-1]


@exercise.mistake
def repeated(layer, x):
    """Some positions are listed more than once: once for each later token that they see. How can
    each be kept once, and in order?"""
    return [
        position
        for word in range(1, x.shape[-2])
        for position in at_positions(moved_by(layer, x, word))[:word].nonzero().flatten().tolist()
    ]


@exercise.mistake
def as_booleans(layer, x):
    """One True or False came back for each position. Asked for are the numbers of those that
    leak."""
    leaks = leaking(layer, x)
    return [position in leaks for position in range(x.shape[-2])]


@exercise.mistake
def as_a_tensor(layer, x):
    """The positions came back as a tensor. Which method makes a list of Python's own numbers of
    it?"""
    return torch.tensor(leaking(layer, x), dtype=torch.long)


@exercise.mistake
def list_of_tensors(layer, x):
    """The list holds tensors of one number each. Which method turns a whole tensor into a list of
    Python's own numbers?"""
    return list(torch.tensor(leaking(layer, x), dtype=torch.long))


@exercise.mistake
def as_a_set(layer, x):
    """The positions came back as a set, which has no order. What makes a list in order of it?"""
    return set(leaking(layer, x))


@exercise.mistake
def yes_or_no(layer, x):
    """One answer came back for the whole layer: leaks or not. Asked for is where it leaks."""
    return bool(leaking(layer, x))


@exercise.mistake
def all_at_once(layer, x):
    """All tokens were moved at once, so a state that moved may have seen its past alone, or itself.
    Whose change, and nobody else's, shows that position 2 sees position 5?"""
    moved = at_positions(~torch.isclose(layer(x + torch.randn_like(x)), layer(x), equal_nan=True))
    return moved[:-1].nonzero().flatten().tolist()


def reached_by_gradients(layer, x, weights):
    """List the positions whose weighted sum has a gradient at a later token."""
    leaks = []
    for i in range(x.shape[-2]):
        words = x.detach().clone().requires_grad_()
        state = layer(words)[..., i, :]
        [gradient] = torch.autograd.grad(state, words, weights(state), allow_unused=True)
        if gradient is not None and (gradient[..., i + 1 :, :].abs() > 1e-5).any():
            leaks.append(i)
    return leaks


@exercise.mistake
def by_gradients(layer, x):
    """Tokens were moved by very little, as a gradient moves them: behind a ReLU that is closed
    nothing moves then, whatever a token far away would open. How far is a token to be moved?"""
    return reached_by_gradients(layer, x, torch.rand_like)


@exercise.mistake
def by_gradients_of_the_sum(layer, x):
    """Tokens were moved by very little, as a gradient moves them, and the entries of a state were
    added up, which a norm keeps. How far is a token to be moved, and what is compared?"""
    return reached_by_gradients(layer, x, torch.ones_like)


@exercise.alternative
def all_later_words_replaced(layer, x):
    before = layer(x)

    def leaks(i, sign):
        later = sign * (10 + torch.rand_like(x[..., i + 1 :, :]))
        state = layer(torch.cat([x[..., : i + 1, :], later], dim=-2))[..., i, :]
        return not torch.allclose(state, before[..., i, :], atol=1e-5, equal_nan=True)

    return [i for i in range(x.shape[-2] - 1) if leaks(i, 1) or leaks(i, -1)]
