"""A small causal model with any position scheme: how far it reads, what it writes (lesson 04)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib.instruments.position_schemes import NoPositions
from course_lib.masks import causal_mask
from course_lib.multi_head import MultiHeadAttention
from course_lib.positions import alibi
from course_lib.transformer import EncoderBlock

LAYERS, D_MODEL, HEADS = 2, 64, 4
WINDOW, EVERY = 32, 4  # positions that share a mean; every fourth of them counts


class SlopedHeads(NoPositions):
    """Give each head its own slope. Source: Press et al. 2022, section 3."""

    def attend(self, q, k, v, mask=None, tree=None):
        """Let the words meet; q and k have an axis of heads before that of the words."""
        heads, n, d_k = q.shape[-3:]
        scores = dot_scores(q, k) / d_k**0.5 + alibi(n, n, heads)
        return weighted_sum(softmax(scores, mask), v)


class CausalModel(nn.Module):
    """Predict from the tokens so far: two pre-norm blocks of four heads, under a causal mask."""

    def __init__(self, scheme: NoPositions, vocab: int):
        super().__init__()
        self.scheme = scheme
        self.table = nn.Parameter(torch.randn(vocab, D_MODEL) / D_MODEL**0.5)

        def attention(d_model: int, heads: int) -> nn.Module:
            return MultiHeadAttention(d_model, heads, rule=scheme.attend)

        self.blocks = nn.ModuleList(
            EncoderBlock(D_MODEL, HEADS, 4 * D_MODEL, "pre", attention=attention)
            for _ in range(LAYERS)
        )
        self.last_norm = nn.LayerNorm(D_MODEL)

    def forward(self, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n vocab"]:
        """Return the logits at each place."""
        x = self.scheme.encode(self.table.shape[-1] ** 0.5 * self.table[tokens])
        for block in self.blocks:
            x = block(x, causal_mask(tokens.shape[-1]))
        return self.last_norm(x) @ self.table.mT


def next_token_loss(
    model: nn.Module, batch: tuple[Int[Tensor, "batch n"], Int[Tensor, "batch n"]]
) -> Float[Tensor, ""]:
    """Return the mean cross-entropy of the following tokens, in nats."""
    tokens, following = batch
    return F.cross_entropy(model(tokens).mT, following)


@torch.no_grad()
def loss_by_window(model: nn.Module, texts: Int[Tensor, "batch n"]) -> Float[Tensor, " windows"]:
    """Return the loss of each WINDOW positions, with all tokens before each position shown."""
    loss = F.cross_entropy(model(texts[:, :-1]).mT, texts[:, 1:], reduction="none").mean(0)
    return loss[EVERY - 1 :: EVERY].unflatten(0, (-1, WINDOW // EVERY)).mean(-1)


@torch.no_grad()
def loss_of_the_last(model: nn.Module, texts: Int[Tensor, "batch n"]) -> Float[Tensor, " windows"]:
    """Return what `loss_by_window` does from the second window on, WINDOW tokens shown alone."""
    parts = texts[:, EVERY:].unfold(1, WINDOW + 1, EVERY)
    loss = [F.cross_entropy(model(part[:, :-1])[:, -1], part[:, -1]) for part in parts.unbind(1)]
    return torch.stack(loss).unflatten(0, (-1, WINDOW // EVERY)).mean(-1)


@torch.no_grad()
def write(model: nn.Module, tokens: Int[Tensor, " n"], more: int, seed: int) -> Int[Tensor, " m"]:
    """Go on with a text by so many tokens, drawn by their probabilities."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(more):
        probabilities = softmax(model(tokens[None])[0, -1])
        tokens = torch.cat([tokens, torch.multinomial(probabilities, 1, generator=generator)])
    return tokens
