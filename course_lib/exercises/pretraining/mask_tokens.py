"""Hide some tokens, and remember what they were: BERT's task."""

import torch
from torch import Tensor

from course_lib.answers.answer import SideEffect
from course_lib.checking.exercise import Draw, Exercise
from course_lib.pretraining import mask_tokens

MASK, VOCAB, SPECIAL = 90, 80, (0, 1, 2)


def without_inputs(result):
    """Keep of the inputs what every right answer has in common: the shares, in a long text."""
    fits = isinstance(result, tuple) and len(result) == 2
    if not fits or not all(isinstance(x, Tensor) for x in result):
        return result
    inputs, targets = result
    chosen = targets != -100
    if inputs.shape != targets.shape or chosen.sum() < 1000:
        return torch.zeros_like(inputs), targets
    found = inputs[chosen]
    _, counts = found.unique(return_counts=True)
    stays = (found == targets[chosen]).float().mean()
    shares = torch.stack([counts.max() / len(found), stays]).mul(10).round()
    return torch.cat([shares, torch.tensor([len(counts) > VOCAB / 2])]), chosen.shape


exercise = Exercise(
    reference=mask_tokens,
    lesson="16",
    title="Hide and ask",
    minutes=15,
    difficulty=2,
    canonical=without_inputs,
    equivalent=(
        # a uniform number is hardly ever just the bound; `share` 1 would miss none
        "fate < 0.8 -> fate <= 0.8",
        "fate < 0.9 -> fate <= 0.9",
        "fate >= 0.8 -> fate > 0.8",
        "uniform() < share -> uniform() <= share",
    ),
    hints=(
        "Draw one uniform number for each token. Which tokens are chosen if you compare it with "
        "`share`, and which of them must never be?",
        "A second uniform number decides what becomes of a chosen token. Below 0.8 it is masked: "
        "between which two numbers does it become a random one?",
        "The loss asks only for the chosen tokens. What is the target of one that was chosen and "
        "stays as it is, and what of one that was not chosen?",
        "Where do all random numbers come from, if the same seed is to give the same result and "
        "torch's own generator must stay untouched?",
    ),
    clauses={
        "not in `special`": "special_too",
        "80 % become `mask`": "all_masked",
        "10 % stay as they are": "none_stays",
        "a random id below `vocab`": "ids_of_the_text",
        "-100 elsewhere": "all_targets",
        "The same seed makes the same choice": "own_seed",
        "torch's own random state stays": "seeds_everybody",
    },
)


def text(draw: Draw, *shape: int):
    return draw.integers(0, VOCAB, *shape)


@exercise.cases
def cases(draw: Draw):
    seed = draw.number(0, 1000)
    yield "five tokens, all chosen", (3 + text(draw, 5), 1.0, MASK, 90, SPECIAL, seed)
    yield "five tokens, none chosen", (text(draw, 5), 0.0, MASK, VOCAB, SPECIAL, seed)
    some = torch.tensor([0, 7, 1, 9, 2])
    yield "three special ones, which stay", (some, 1.0, MASK, VOCAB, SPECIAL, seed)
    yield "a batch of sentences", (text(draw, 3, 7), 1.0, MASK, VOCAB, SPECIAL, seed)
    yield "two batch dimensions", (text(draw, 2, 3, 4), 1.0, MASK, VOCAB, SPECIAL, seed)
    yield "one token", (3 + text(draw, 1), 1.0, MASK, 90, SPECIAL, seed)
    yield "nothing is special", (draw.integers(0, 3, 2, 6), 1.0, MASK, VOCAB, (), seed)


def many(answer, draw: Draw, share: float = 0.5):
    """Ask for many tokens: tokens, inputs, targets, and which id the mask has."""
    tokens, mask = text(draw, 40, 500), draw.number(VOCAB, 99)
    return tokens, *answer(tokens, share, mask, VOCAB, SPECIAL, draw.number(0, 1000)), mask


def near(found, expected: float, tokens: int) -> bool:
    """Allow six standard deviations of a share of so many tokens."""
    return abs(float(found) - expected) < 6 * (expected * (1 - expected) / tokens) ** 0.5


@exercise.requires("the targets are the original tokens, or -100")
def targets_are_the_tokens(answer, draw: Draw):
    tokens, _, targets, _ = many(answer, draw)
    chosen = targets != -100
    return chosen.any() and not chosen.all() and torch.equal(targets[chosen], tokens[chosen])


@exercise.requires("so large a share of the tokens that are not special is chosen")
def share_chosen(answer, draw: Draw):
    for share in (0.15, 0.6):
        tokens, _, targets, _ = many(answer, draw, share)
        allowed = tokens >= 3
        if not near((targets[allowed] != -100).float().mean(), share, int(allowed.sum())):
            return False
    return True


@exercise.requires("special tokens are never chosen, and share 1 chooses all others")
def special_kept(answer, draw: Draw):
    tokens, inputs, targets, _ = many(answer, draw, 1.0)
    special = tokens < 3
    kept = torch.equal(inputs[special], tokens[special]) and (targets[special] == -100).all()
    return kept and torch.equal(targets[~special], tokens[~special])


@exercise.requires("tokens that are not chosen stay as they are; share 0 changes nothing")
def others_stay(answer, draw: Draw):
    tokens, inputs, targets, _ = many(answer, draw)
    others = targets == -100
    same, unchanged, none, _ = many(answer, draw, 0.0)
    nothing = torch.equal(same, unchanged) and (none == -100).all()
    return nothing and torch.equal(inputs[others], tokens[others]) and (inputs != tokens).any()


@exercise.requires("of the chosen, 80 % are masked, 10 % random, and 10 % stay", points=2)
def fates(answer, draw: Draw):
    tokens, inputs, targets, mask = many(answer, draw, 0.9)
    chosen = targets != -100
    count = int(chosen.sum())
    masked = (inputs[chosen] == mask).float().mean()
    stays = (inputs[chosen] == tokens[chosen]).float().mean()
    # a random token is the old one, once in VOCAB times
    return near(masked, 0.8, count) and near(stays, 0.1 + 0.1 / VOCAB, count)


@exercise.requires("random tokens are any id below vocab, each as likely")
def any_token(answer, draw: Draw):
    tokens, inputs, targets, mask = many(answer, draw, 1.0)
    random = (targets != -100) & (inputs != mask) & (inputs != tokens)
    counts = torch.bincount(inputs[random], minlength=VOCAB)
    # of two ids, one of which is the mask, a random one is as often the token itself
    alike = torch.zeros(40, 500, dtype=torch.long)
    again, _ = answer(alike, 1.0, 1, 2, (), draw.number(0, 1000))
    if not near((again == 0).float().mean(), 0.1 + 0.1 / 2, alike.numel()):
        return False
    return len(counts) == VOCAB and counts.min() > 0 and counts.max() < 4 * counts.float().mean()


@exercise.requires("the same seed makes the same choice, another seed another one")
def seeded(answer, draw: Draw):
    tokens = text(draw, 6, 50)
    first, again, other = (
        answer(tokens, 0.5, MASK, VOCAB, SPECIAL, seed) for seed in (5, 5, draw.number(6, 99))
    )
    same = all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    return same and not torch.equal(first[1], other[1])


@exercise.requires("each row, and each place, is chosen by itself")
def independent(answer, draw: Draw):
    tokens = torch.full((60, 60), 9)
    _, targets = answer(tokens, 0.5, MASK, VOCAB, SPECIAL, draw.number(0, 1000))
    chosen = (targets != -100).float()
    return all(0.1 < part < 0.9 for axis in (0, 1) for part in chosen.mean(axis).tolist())


@exercise.requires("a text of one token is chosen in some calls, and not in others")
def by_chance(answer, draw: Draw):
    one, first = torch.tensor([[9]]), draw.number(0, 1000)
    chosen = {
        answer(one, 0.5, MASK, VOCAB, SPECIAL, seed)[1].item() for seed in range(first, first + 30)
    }
    return chosen == {9, -100}


@exercise.requires("a text in which all tokens are alike gets other ids, too")
def other_ids(answer, draw: Draw):
    inputs, _ = answer(torch.full((60, 60), 9), 1.0, MASK, VOCAB, SPECIAL, draw.number(0, 1000))
    return len(inputs.unique()) > VOCAB / 2


def hidden(
    tokens, share, mask, vocab, special, seed, masked=0.8, noisy=0.9, rows=None, noises=None
):
    """Hide tokens, in as many ways as there are mistakes: the inputs, and which were chosen."""
    draws = torch.Generator().manual_seed(seed)
    rows = tokens.shape if rows is None else rows
    noises = tokens.shape if noises is None else noises
    spared = torch.tensor(special, dtype=tokens.dtype)
    chosen = torch.rand(rows, generator=draws) < share
    chosen = chosen & ~torch.isin(tokens, spared)
    fate = torch.rand(tokens.shape, generator=draws)
    noise = torch.randint(vocab, noises, generator=draws)
    inputs = torch.where(chosen & (fate < masked), mask, tokens)
    return torch.where(chosen & (fate >= masked) & (fate < noisy), noise, inputs), chosen


def asked(tokens, inputs, chosen):
    """Ask for what was chosen."""
    return inputs, torch.where(chosen, tokens, -100)


@exercise.mistake
def all_masked(tokens, share, mask, vocab, special, seed):
    """All chosen tokens are masked. Later the model reads texts without a mask: what becomes of the
    other 20 %?"""
    return asked(tokens, *hidden(tokens, share, mask, vocab, special, seed, masked=1.0))


@exercise.mistake
def none_stays(tokens, share, mask, vocab, special, seed):
    """The chosen tokens are masked or random, and none stays as it is: 80 %, 10 %, and what is
    left?"""
    return asked(tokens, *hidden(tokens, share, mask, vocab, special, seed, noisy=1.0))


@exercise.mistake
def no_noise(tokens, share, mask, vocab, special, seed):
    """A chosen token is masked or stays, and none becomes a random one."""
    return asked(tokens, *hidden(tokens, share, mask, vocab, special, seed, noisy=0.8))


@exercise.mistake
def exchanged(tokens, share, mask, vocab, special, seed):
    """Masked and random have changed places: 10 % of the chosen are masked. Which of the two is the
    rule, and which the exception?"""
    return asked(tokens, *hidden(tokens, share, mask, vocab, special, seed, masked=0.1))


@exercise.mistake
def special_too(tokens, share, mask, vocab, special, seed):
    """Special tokens were chosen too: the model would be asked for the padding and for the ends of
    sentences."""
    return asked(tokens, *hidden(tokens, share, mask, vocab, (), seed))


@exercise.mistake
def first_special_alone(tokens, share, mask, vocab, special, seed):
    """Only the first of the special tokens is left alone. `special` is a tuple: how do you compare
    each token with all of them?"""
    return asked(tokens, *hidden(tokens, share, mask, vocab, special[:1], seed))


@exercise.mistake
def targets_of_the_others(tokens, share, mask, vocab, special, seed):
    """The tokens that are not chosen are the ones asked for. Where is the target -100?"""
    inputs, chosen = hidden(tokens, share, mask, vocab, special, seed)
    return asked(tokens, inputs, ~chosen)


@exercise.mistake
def all_targets(tokens, share, mask, vocab, special, seed):
    """Every token is asked for, chosen or not: a model that sees a token can copy it. Where is the
    target -100?"""
    inputs, _ = hidden(tokens, share, mask, vocab, special, seed)
    return inputs, tokens.clone()


@exercise.mistake
def hidden_targets(tokens, share, mask, vocab, special, seed):
    """The targets were taken from the inputs, after they were hidden: the model is asked to say the
    mask. What was there before?"""
    inputs, chosen = hidden(tokens, share, mask, vocab, special, seed)
    return inputs, torch.where(chosen, inputs, -100)


@exercise.mistake
def changed_targets_alone(tokens, share, mask, vocab, special, seed):
    """Chosen tokens that stay as they are were not asked for. They are chosen like the others: the
    model cannot know which of the tokens it sees are right."""
    inputs, chosen = hidden(tokens, share, mask, vocab, special, seed)
    return asked(tokens, inputs, chosen & (inputs != tokens))


@exercise.mistake
def zero_ignored(tokens, share, mask, vocab, special, seed):
    """The targets of tokens that are not asked for are 0, which is a token like any other. Which
    number does torch's cross-entropy ignore?"""
    inputs, chosen = hidden(tokens, share, mask, vocab, special, seed)
    return inputs, torch.where(chosen, tokens, 0)


@exercise.mistake
def own_seed(tokens, share, mask, vocab, special, seed):
    """The seed changes nothing: the choice is another one at each call, or the same for every seed.
    Where is the generator made, and is it used?"""
    return asked(tokens, *hidden(tokens, share, mask, vocab, special, 0))


@exercise.mistake(raises=SideEffect)
def seeds_everybody(tokens, share, mask, vocab, special, seed):
    """`torch.manual_seed` seeds the numbers of everybody: what is drawn after this call is the same
    each time. Draw from a generator of your own, `torch.Generator().manual_seed(seed)`."""
    torch.manual_seed(seed)
    return mask_tokens(tokens, share, mask, vocab, special, seed)


@exercise.mistake
def one_row_for_all(tokens, share, mask, vocab, special, seed):
    """One choice was made for all rows: a place is hidden in every sentence or in none. How many
    numbers must be drawn?"""
    inputs, chosen = hidden(tokens, share, mask, vocab, special, seed, rows=tokens.shape[-1:])
    return asked(tokens, inputs, chosen)


@exercise.mistake
def one_noise_for_all(tokens, share, mask, vocab, special, seed):
    """One random token serves the whole text. Each is drawn by itself, from the ids below
    `vocab`."""
    return asked(tokens, *hidden(tokens, share, mask, vocab, special, seed, noises=()))


@exercise.mistake
def as_many_as_the_share(tokens, share, mask, vocab, special, seed):
    """As many tokens are chosen as the share says, and not each with this probability: a text of
    one token is chosen always or never. What is drawn for each token?"""
    draws = torch.Generator().manual_seed(seed)
    places = torch.rand(tokens.shape, generator=draws)
    spared = torch.isin(tokens, torch.tensor(special, dtype=tokens.dtype))
    order = places.masked_fill(spared, 2.0).flatten().argsort().argsort().reshape(tokens.shape)
    chosen = order < round(share * int((~spared).sum()))
    inputs, _ = hidden(tokens, 1.0, mask, vocab, special, seed)
    return asked(tokens, torch.where(chosen, inputs, tokens), chosen)


@exercise.mistake
def ids_of_the_text(tokens, share, mask, vocab, special, seed):
    """The random ids were taken from the text, so a token that it does not have never comes. They
    may be any id below `vocab`."""
    generator = torch.Generator().manual_seed(seed)
    inputs, chosen = hidden(tokens, share, mask, vocab, special, seed)
    noisy = chosen & (inputs != mask) & (inputs != tokens)
    places = torch.randint(tokens.numel(), tokens.shape, generator=generator)
    return asked(tokens, torch.where(noisy, tokens.flatten()[places], inputs), chosen)


@exercise.alternative
def one_draw_alone(tokens, share, mask, vocab, special, seed):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.rand(tokens.shape, generator=generator)
    chosen = drawn < share
    for token in special:
        chosen = chosen & (tokens != token)
    inputs, targets = tokens.clone(), torch.full_like(tokens, -100)
    targets[chosen] = tokens[chosen]
    # within the chosen, drawn / share is uniform again
    inputs[chosen & (drawn < 0.8 * share)] = mask
    noisy = chosen & (drawn >= 0.8 * share) & (drawn < 0.9 * share)
    inputs[noisy] = torch.randint(vocab, (int(noisy.sum()),), generator=generator)
    return inputs, targets


@exercise.alternative
def token_by_token(tokens, share, mask, vocab, special, seed):
    import random

    draws = random.Random(seed)
    inputs, targets = tokens.flatten().tolist(), []
    for place, token in enumerate(inputs):
        if token in special or draws.random() >= share:
            targets.append(-100)
            continue
        targets.append(token)
        fate = draws.random()
        if fate < 0.9:
            inputs[place] = mask if fate < 0.8 else draws.randrange(vocab)
    return tuple(torch.tensor(x).reshape(tokens.shape) for x in (inputs, targets))
