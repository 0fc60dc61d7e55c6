"""What SmolLM2 answers: draws, what they are worth, and their states (lessons 17 and 18)."""

import random
from collections.abc import Callable, Iterator, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from course_lib.data.questions import is_right
from course_lib.data.verifiable import Question
from course_lib.pretrained.smollm2 import SmolLM2, conversations, turns
from course_lib.reward import vote

GROUP, LONGEST, TEMPERATURE = 8, 10, 0.7  # answers to a question, their tokens


def encoded(model: SmolLM2, question: Question) -> Int[Tensor, " n"]:
    """Return a question's prompt as tokens."""
    return torch.tensor(model.tokenizer.encode(turns(question.asked, system=None)).ids)


def alike(
    model: SmolLM2, questions: Sequence[Question], choose: random.Random, count: int = 2
) -> list[Question]:
    """Draw questions whose prompts are equally long."""
    length = len(encoded(model, choose.choice(questions)))
    return choose.choices([x for x in questions if len(encoded(model, x)) == length], k=count)


def answers(
    model: SmolLM2, questions: Sequence[Question], draw: torch.Generator
) -> tuple[Int[Tensor, "answers n"], Int[Tensor, "answers m"], list[str]]:
    """Draw eight answers to each question: prompts and answers as rows of tokens, and texts.

    The prompts are equally long.
    """
    prompts = torch.stack([encoded(model, x) for x in questions])
    drawn = model.sample(prompts, GROUP, LONGEST, TEMPERATURE, draw)
    texts = model.tokenizer.decode_batch(drawn.tolist())
    return prompts.repeat_interleave(GROUP, 0), drawn, texts


def log_probs(
    model: SmolLM2, prompts: Int[Tensor, "answers n"], drawn: Int[Tensor, "answers m"]
) -> Float[Tensor, "answers m"]:
    """Return log p of each drawn token, at the temperature of the drawing.

    The answers to a question are read again in the backward pass, one question after the other,
    so that nothing of them is kept until then: less memory, for a second forward pass.
    """

    def looked_up(prompts: Tensor, drawn: Tensor) -> Tensor:
        tokens = torch.cat([prompts, drawn], dim=1)
        states = model.states(tokens)[:, prompts.shape[1] - 1 : -1]
        scores = model.scores(states) / TEMPERATURE
        return -F.cross_entropy(scores.mT, drawn, reduction="none")

    groups = zip(prompts.split(GROUP), drawn.split(GROUP), strict=True)
    return torch.cat([checkpoint(looked_up, *group, use_reentrant=False) for group in groups])


def share_right(
    model: SmolLM2, asked: Sequence[tuple[str, str]], begin: Callable[[str], str] = lambda _: ""
) -> float:
    """Return the share of questions that are answered with their right word.

    `begin` gives the first words of the answer to a question, which are written for the model.
    """
    prompts = (turns(question, system=None) + begin(question) for question, _ in asked)
    told = ("".join(model.write(prompt, max_new_tokens=25)) for prompt in prompts)
    right = [is_right(text, word) for text, (_, word) in zip(told, asked, strict=True)]
    return sum(right) / len(right)


def rewarded(
    model: SmolLM2, questions: Sequence[Question], reward: Callable, seed: int
) -> list[tuple[float, str]]:
    """Return how many of eight answers to each question are rewarded, and the commonest answer.

    `reward(text, tokens, word)` is 0 or 1.
    """
    draw, found = torch.Generator().manual_seed(seed), []
    for x in questions:
        _, drawn, texts = answers(model, [x], draw)
        found.append((sum(map(reward, texts, drawn, [x.word] * GROUP)), vote(texts) or ""))
    return found


def side_by_side(
    questions: Sequence[Question], **found: Sequence[tuple[float, str]]
) -> Iterator[str]:
    """Yield a line a question: how many answers of each way are rewarded, and the last one's."""
    yield "".join(f"{way:>8}" for way in found) + "   rewarded of 8"
    for x, *ways in zip(questions, *found.values(), strict=True):
        counts = "".join(f"{count:8.0f}" for count, _ in ways)
        yield f"{counts}   {x.asked:42} {' '.join(ways[-1][1].split())}"


@torch.no_grad()
def last_states(
    model: SmolLM2, answered: Sequence[tuple[str, str]]
) -> Float[Tensor, "answers d_model"]:
    """Return the model's state at the last token of each answer's text, of questions and answers.

    What comes behind the text, its end, is not read.
    """
    talk = [(turns(asked, system=None), text) for asked, text in answered]
    rows, _, lengths = conversations(model.tokenizer, talk)
    return model.states(rows)[torch.arange(len(rows)), lengths - 2]
