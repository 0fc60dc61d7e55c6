"""A Transformer of attention alone, texts that repeat, and scores of heads (07_induction_heads)."""

from collections.abc import Collection, Iterator
from typing import cast

import torch
from einops import einsum, rearrange, reduce
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.masks import causal_mask
from course_lib.positions import sinusoidal

LETTERS, LENGTH = 26, 36
SHORTEST, LONGEST = 8, 18  # letters until the text begins again


class Heads(nn.Module):
    """One layer: heads side by side, whose outputs are summed into the residual stream."""

    def __init__(self, d_model: int, heads: int, d_k: int):
        super().__init__()
        self.w_q, self.w_k, self.w_v = (
            nn.Parameter(torch.randn(heads, d_model, d_k) / d_model**0.5) for _ in range(3)
        )
        self.w_o = nn.Parameter(torch.randn(heads, d_k, d_model) / (heads * d_k) ** 0.5)

    def weights(self, x: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch head n n"]:
        """Return the causal weights of each head."""
        q, k = (einsum(x, w, "b n d, h d k -> b h n k") for w in (self.w_q, self.w_k))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        return scores.masked_fill(~causal_mask(x.shape[-2]), float("-inf")).softmax(-1)

    def forward(
        self, x: Float[Tensor, "batch n d"], kept: Float[Tensor, " head"]
    ) -> Float[Tensor, "batch n d"]:
        """Return what the heads write to the stream; `kept` is 0 for a head that is removed."""
        v = einsum(x, self.w_v, "b n d, h d k -> b h n k")
        found = self.weights(x) @ v * rearrange(kept, "h -> h 1 1")
        return einsum(found, self.w_o, "b h n k, h k d -> b n d")


class AttentionOnly(nn.Module):
    """Embedding, sinusoidal positions, layers of heads with residual connections, logits."""

    def __init__(self, layers: int, heads: int, d_model: int = 64, d_k: int = 32):
        super().__init__()
        self.embedding = nn.Embedding(LETTERS, d_model)
        self.layers = nn.ModuleList(Heads(d_model, heads, d_k) for _ in range(layers))
        self.scores = nn.Linear(d_model, LETTERS)
        self.heads = heads

    def forward(
        self, tokens: Int[Tensor, "batch n"], removed: Collection[tuple[int, int]] = ()
    ) -> Float[Tensor, "batch n vocab"]:
        """Score each letter as the next one, without the heads `removed`: (layer, head), from 0."""
        return self.scores(self.streams(tokens, removed)[-1])

    def weights(self, tokens: Int[Tensor, "batch n"]) -> list[Float[Tensor, "batch head n n"]]:
        """Return the weights of the heads, for each layer."""
        streams = self.streams(tokens)
        return [
            cast(Heads, layer).weights(x) for layer, x in zip(self.layers, streams, strict=False)
        ]

    def streams(
        self, tokens: Int[Tensor, "batch n"], removed: Collection[tuple[int, int]] = ()
    ) -> list[Float[Tensor, "batch n d"]]:
        """Return all streams: the embedding, and after each layer."""
        positions = sinusoidal(tokens.shape[-1], self.embedding.embedding_dim)
        streams = [self.embedding(tokens) + positions]
        for number, layer in enumerate(self.layers):
            kept = torch.ones(self.heads)
            kept[[head for at, head in removed if at == number]] = 0
            streams.append(streams[-1] + layer(streams[-1], kept))
        return streams


def repeated(
    batch: int, seed: int = 0, shuffled: bool = False
) -> Iterator[tuple[Int[Tensor, "batch n"], Int[Tensor, " batch"]]]:
    """Yield texts of random letters without end, and after how many letters each begins again.

    No letter occurs twice before that. With `shuffled`, the same letters come in another order
    each time.
    """
    generator = torch.Generator().manual_seed(seed)
    while True:
        periods = torch.randint(SHORTEST, LONGEST + 1, (batch, 1), generator=generator)
        letters = torch.rand(batch, LETTERS, generator=generator).argsort(-1)
        places = torch.arange(LENGTH) % periods
        if shuffled:
            rounds = torch.arange(LENGTH) // periods
            keys = torch.rand(batch, LENGTH // SHORTEST + 1, LONGEST, generator=generator)
            free = torch.arange(LONGEST) < periods.unsqueeze(-1)
            order = keys.masked_fill(~free, 2).argsort(-1)
            places = order.flatten(1).gather(1, rounds * LONGEST + places)
        yield letters.gather(1, places), periods.squeeze(1)


def next_letter_loss(model: AttentionOnly, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean loss of all next letters."""
    tokens, _ = batch
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


@torch.no_grad()
def loss_on_return(
    model: AttentionOnly, batch: tuple[Tensor, Tensor], removed: Collection[tuple[int, int]] = ()
) -> float:
    """Return the mean loss, in nats, of the letters that return: all but their first copies."""
    tokens, periods = batch
    logits = model(tokens[:, :-1], removed)
    losses = F.cross_entropy(logits.mT, tokens[:, 1:], reduction="none")
    # the first letter of the second copy cannot be known: nothing says that the text begins again
    known = torch.arange(1, tokens.shape[1]) > periods.unsqueeze(-1)
    return losses[known].mean().item()


def previous_token_score(weights: Float[Tensor, "batch head n n"]) -> Float[Tensor, " head"]:
    """Return the mean weight of each head on the token before."""
    return reduce(weights.diagonal(-1, -2, -1), "batch head n -> head", "mean")


def induction_score(
    weights: Float[Tensor, "batch head n n"], tokens: Int[Tensor, "batch n"]
) -> Float[Tensor, " head"]:
    """Return the mean weight of each head on what followed earlier copies of the query's token."""
    earlier = (tokens.unsqueeze(-1) == tokens.unsqueeze(-2)).tril(-1)
    # the key after an earlier copy
    followed = F.pad(earlier, (1, 0))[..., :-1].float()
    found = einsum(weights, followed, "batch head n key, batch n key -> batch head n")
    returns = earlier.any(-1).float()
    return einsum(found, returns, "batch head n, batch n -> head") / returns.sum()
