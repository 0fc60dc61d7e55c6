"""A small model of Shakespeare's words, before and after pretraining (lesson 16).

Two pre-norm blocks and 0.5 million parameters. In research/experiments/few_labels.py it fills in
masked words of 28 plays for 1,500 steps; nine other plays are left for tests.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.data import plays
from course_lib.data.plays import END
from course_lib.instruments.weights import load_weights
from course_lib.language_model import LanguageModel, cross_entropy
from course_lib.masks import causal_mask
from course_lib.multi_head import MultiHeadAttention
from course_lib.positions import alibi
from course_lib.transformer import EncoderBlock

NAME = "play_reader"  # of the file with its weights
SPECIAL = ("[UNK]", "[MASK]", END)
UNKNOWN, MASK = 0, 1
WORDS = 3000  # the most frequent ones; every other word is [UNK]
MODEL: dict[str, Any] = {"layers": 2, "d_model": 96, "heads": 4, "d_ff": 384, "max_length": 48}
STEEP = 4  # how many times ALiBi's slopes a reader begins with


class Vocabulary:
    """Number the most frequent words of the plays that are read."""

    def __init__(self, words: Sequence[str]):
        frequent = Counter(word for word in words if word != END).most_common(WORDS)
        known = (*SPECIAL, *(word for word, _ in frequent))
        self.known = known
        self._numbers = {word: number for number, word in enumerate(known)}

    def __len__(self) -> int:
        return len(self._numbers)

    def encode(self, words: Sequence[str]) -> Int[Tensor, " n"]:
        """Return the number of each word."""
        return torch.tensor([self._numbers.get(word, UNKNOWN) for word in words])


class LocalAttention(nn.Module):
    """Attention that adds a learned number to each score, by head and distance.

    The numbers begin as those of ALiBi times `STEEP`, so that each token attends to its neighbours
    first. Without this the masked twin is still at the loss of the words' frequencies after 1,500
    steps. Source: Raffel et al. 2020, section 2.1 (a number for each distance); Press et al. 2022.
    """

    def __init__(self, heads: int, max_length: int):
        super().__init__()
        slopes = STEEP * alibi(max_length, max_length, heads)
        # from the farthest token on the left to the farthest on the right
        self.numbers = nn.Parameter(torch.cat([slopes[:, -1], slopes[:, 0, 1:]], dim=-1))

    def forward(
        self,
        q: Float[Tensor, "batch heads n d_k"],
        k: Float[Tensor, "batch heads n d_k"],
        v: Float[Tensor, "batch heads n d_k"],
        mask: Bool[Tensor, "*#batch n n"] | None = None,
    ) -> Float[Tensor, "batch heads n d_k"]:
        """Attend, where `mask` is True."""
        places = torch.arange(q.shape[-2])
        offsets = places - places.unsqueeze(-1) + self.numbers.shape[-1] // 2
        scores = q @ k.mT / q.shape[-1] ** 0.5 + self.numbers[:, offsets]
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return scores.softmax(-1) @ v


def local_block(d_model: int, heads: int, d_ff: int, norm: Literal["post", "pre"]) -> EncoderBlock:
    """Make a block whose attention knows distances."""
    rule = LocalAttention(heads, MODEL["max_length"])
    return EncoderBlock(
        d_model, heads, d_ff, norm, attention=partial(MultiHeadAttention, rule=rule)
    )


def no_positions(max_length: int, d_model: int) -> nn.Identity:
    """Add nothing to the tokens: the attention knows distances."""
    return nn.Identity()


class Reader(LanguageModel):
    """Lesson 10's model, with states that may see both sides (causal=False) or the left one."""

    def __init__(self, vocab: int, causal: bool):
        super().__init__(vocab, **MODEL, block=local_block, positions=no_positions)
        self.causal = causal

    def states(self, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n d_model"]:
        """Return a state for each token."""
        x = self.embedding(tokens)
        mask = causal_mask(tokens.shape[-1]) if self.causal else None
        for block in self.blocks:
            x = block(x, mask)
        return self.last_norm(x)


def blanks(vocabulary: Vocabulary) -> Int[Tensor, "m 25"]:
    """Return stretches of the tested plays, the middle word of which is known and to be guessed."""
    tokens = vocabulary.encode([word for title in plays.TESTED for word in plays.stream(title)])
    rows = tokens[: len(tokens) // 25 * 25].view(-1, 25)
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[:2000]]
    return rows[rows[:, 12] != UNKNOWN]


@torch.no_grad()
def fill(reader: Reader, vocabulary: Vocabulary, line: str) -> str:
    """Return the likeliest words for the one [MASK] of a line, with their probabilities."""
    tokens = vocabulary.encode(line.split())
    [logits] = reader.output(reader.states(tokens.unsqueeze(0))[0, tokens == MASK])
    chances, words = logits.softmax(-1).topk(4)
    found = zip(words.tolist(), chances.tolist(), strict=True)
    return ", ".join(f"{vocabulary.known[word]} {chance:.0%}" for word, chance in found)


def blank_loss(logits: Float[Tensor, "m vocab"], words: Int[Tensor, " m"]) -> float:
    """Return the loss of the words in blanks, in nats; [UNK] and [MASK] are no answers."""
    logits = logits.index_fill(-1, torch.tensor([UNKNOWN, MASK]), -torch.inf)
    return cross_entropy(logits, words).item()


def load() -> tuple[Reader, Vocabulary]:
    """Return the pretrained model, and its words. Raises `store.NotFetched` or `store.Damaged`."""
    vocabulary = Vocabulary(plays.texts_to_read())
    reader = Reader(len(vocabulary), causal=False)
    load_weights(NAME, reader)
    return reader.eval(), vocabulary
