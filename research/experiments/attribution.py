"""Lesson 02: where attention looks, and which letters the sound depends on."""

import string

import torch
from torch import Tensor

from course_lib.attention import attend
from course_lib.data import spelling
from course_lib.instruments.attribution import letter_drops
from course_lib.seq2seq import Seq2Seq
from research.experiments import spelling_models

LESSON = "02"
SEEDS = (0, 1, 2)
LETTERS, WORDS = 8, 150
CERTAIN = 0.5  # sounds that the model gives less than this are not looked at
UNWEIGHTED = 0.05  # a weight below this is "not looked at"


def measure() -> dict:
    """Return, for each seed, how often weight and effect agree, and where the rest is kept."""
    return {
        "letters": LETTERS,
        "unweighted": UNWEIGHTED,
        "runs": [compare(spelling_models.trained(s, lambda: {"attend": attend})[0]) for s in SEEDS],
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    return [
        f"seed {seed}: " + ", ".join(f"{name} {value:.3g}" for name, value in run.items())
        for seed, run in zip(SEEDS, figures["runs"], strict=True)
    ]


def compare(model: Seq2Seq) -> dict[str, float]:
    """Compare weights with effects, over the held-out words of one length.

    Of all sounds that the model is certain of: the share whose most-weighted letter is also the
    one on which they depend most, the same for the letter of an even walk from the first sound and
    letter to the last, and the share that depends, by half of its probability or more,
    on a letter with next to no weight. For such a letter, the mean drop when it is replaced: in
    all that the decoder sees, in the state with the most weight alone, in all others.
    """
    _, held_out = spelling.split()
    words = sorted({word for word, _ in held_out if len(word) == LETTERS})[:WORDS]
    agree, walk, hidden, drops = [], [], [], []
    for word in words:
        [sounds] = spelling.pronounce(model, [word])
        target = spelling.encode_sounds([sounds])
        weights = model.weights(spelling.encode_words([word]), target[:, :-1])[0, :, :LETTERS]
        p, effect = letter_drops(model, word, sounds)
        for i in range(len(sounds)):
            if p[i] < CERTAIN:
                continue
            looked = int(weights[i].argmax())
            matters = int(effect[i].argmax())
            agree.append(matters == looked)
            walk.append(matters == round((LETTERS - 1) * i / max(1, len(sounds) - 1)))
            unseen = effect[i].masked_fill(weights[i] >= UNWEIGHTED, 0)
            hidden.append(bool(unseen.max() >= p[i] / 2))
            if hidden[-1]:
                letter = int(unseen.argmax())
                drops.append([p[i] - x for x in patched(model, word, target, i, letter, looked)])
    everything, state, others = torch.tensor(drops).mean(0).tolist()
    return {
        "sounds": len(agree),
        "agree": sum(agree) / len(agree),
        "walk": sum(walk) / len(walk),
        "hidden": sum(hidden) / len(hidden),
        "everywhere": everything,
        "most-weighted state alone": state,
        "all but this state": others,
    }


@torch.no_grad()
def patched(
    model: Seq2Seq, word: str, target: Tensor, i: int, letter: int, looked: int
) -> list[float]:
    """Return the probability of sound i after a letter is replaced, the mean over 25 others.

    Replaced in everything that the decoder gets; in the encoder's state at `looked` alone; in
    everything but this state.
    """
    others = string.ascii_lowercase.replace(word[letter], "")
    replaced = [word[:letter] + other + word[letter + 1 :] for other in others]
    states, context = (
        x.expand(25, *x.shape[1:]) for x in model.encoder(spelling.encode_words([word]))
    )
    new_states, new_context = model.encoder(spelling.encode_words(replaced))
    here = torch.zeros(states.shape[1], 1, dtype=torch.bool)
    here[looked] = True
    variants = [
        (new_states, new_context),
        (torch.where(here, new_states, states), context),
        (torch.where(here, states, new_states), new_context),
    ]
    assert model.attend
    found = []
    for keys, first in variants:
        hidden = model.decoder(model.embedding(target[:, :-1]).expand(25, -1, -1), first)
        contexts, _ = model.attend(hidden, keys, torch.tensor(True))
        logits = model.output(torch.cat([hidden, contexts], dim=-1))[:, i]
        found.append(float(logits.softmax(-1)[:, target[0, i + 1]].mean()))
    return found
