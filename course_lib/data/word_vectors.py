"""Word vectors from Shakespeare: a word is described by the company that it keeps."""

from collections import Counter
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from course_lib.data import shakespeare


@dataclass(frozen=True)
class WordVectors:
    """A vector for each word of a vocabulary, the commonest word first."""

    vocab: list[str]
    vectors: Float[Tensor, "vocab d_model"]

    def __call__(self, words: str) -> Float[Tensor, "n d_model"]:
        """Return the vectors of a line's words. Raises KeyError for an unknown word."""
        numbers = {word: number for number, word in enumerate(self.vocab)}
        return self.vectors[[numbers[word] for word in words.lower().split()]]

    def nearest(self, vector: Float[Tensor, " d_model"], n: int) -> list[str]:
        """List the n words whose vectors have the largest cosine with this one."""
        likeness = F.cosine_similarity(self.vectors, vector, dim=-1)
        return [self.vocab[i] for i in likeness.topk(n).indices.tolist()]


def from_shakespeare(vocab: int = 4000, window: int = 5, d_model: int = 64) -> WordVectors:
    """Count which words stand near which, and keep the strongest directions of the counts.

    Positive pointwise mutual information, contexts smoothed by the power 0.75, then a truncated
    SVD, U sqrt(S): Levy et al. 2015. Takes about two seconds.

    Raises `store.NotFetched` or `store.Damaged`.
    """
    text = shakespeare.words(shakespeare.complete_works())
    commonest = [word for word, _ in Counter(text).most_common(vocab)]
    numbers = {word: number for number, word in enumerate(commonest)}
    ids = torch.tensor([numbers.get(word, -1) for word in text])
    return WordVectors(commonest, _strongest(_positive_pmi(_pairs(ids, vocab, window)), d_model))


def _pairs(ids: Int[Tensor, " n"], vocab: int, window: int) -> Float[Tensor, "vocab vocab"]:
    """Count how often word b stands within `window` words of word a."""
    counts = torch.zeros(vocab * vocab)
    for distance in range(1, window + 1):
        left, right = ids[:-distance], ids[distance:]
        known = (left >= 0) & (right >= 0)
        counts += torch.bincount(left[known] * vocab + right[known], minlength=vocab * vocab)
    counts = counts.reshape(vocab, vocab)
    return counts + counts.T


def _positive_pmi(counts: Float[Tensor, "vocab vocab"]) -> Float[Tensor, "vocab vocab"]:
    together = counts / counts.sum()
    word, context = together.sum(1), together.sum(0) ** 0.75
    return torch.log(together / (word[:, None] * context / context.sum())).clamp(min=0)


def _strongest(matrix: Float[Tensor, "vocab vocab"], d: int) -> Float[Tensor, "vocab d"]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        u, s, _ = torch.svd_lowrank(matrix, q=d + 16, niter=4)
    return u[:, :d] * s[:d].sqrt()
