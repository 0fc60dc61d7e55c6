"""The recipes of lesson 10's language model: rungs of a ladder, each with one change.

A rung names its parts; `train` gives it seconds of the processor, or steps.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.add_norm import layer_norm
from course_lib.corpus import NGrams, cross_fitted
from course_lib.feed_forward import FeedForward, gelu_feed_forward
from course_lib.instruments import training
from course_lib.instruments.corrected_counts import CorrectedCounts
from course_lib.language_model import LanguageModel, TokenEmbedding
from course_lib.multi_head import MultiHeadAttention
from course_lib.optimizers import Muon
from course_lib.positions import LearnedPositions
from course_lib.pretrained.shakespeare_model import (
    modern_block,
    no_positions,
    root_mean_square,
    untie,
)
from course_lib.transformer import EncoderBlock
from research.experiments.architectures import balance

PARTS = ("embedding", "positions", "block", "norm_layer")
WARM_UP = 20  # steps in which the learning rate rises
FLAT = 0.3  # of the time, after which it falls to 0


def fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attend to what came before, by torch's own kernel."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def first_block(*sizes) -> EncoderBlock:
    """Make a block as in GPT-2."""
    attention = partial(MultiHeadAttention, rule=fused)
    feed_forward = partial(FeedForward, network=gelu_feed_forward)
    return EncoderBlock(*sizes, attention=attention, feed_forward=feed_forward)


def quiet(*sizes) -> nn.Module:
    """Make a modern block that adds nothing yet: both of its output matrices are zeros.

    Source: Zhang et al. 2019, section 3; Bachlechner et al. 2021.
    """
    made = cast(EncoderBlock, modern_block(*sizes))
    nn.init.zeros_(made.attention.sublayer.attention.w_o.weight)
    nn.init.zeros_(made.feed_forward.sublayer.w_2.weight)
    return made


def drop(model: LanguageModel, share: float) -> None:
    """Set a share of what the embedding and each layer add to zero while training, by hooks.

    Source: Srivastava et al. 2014; where it acts is as in Vaswani et al. 2017, section 5.4.
    """
    blocks = [cast(EncoderBlock, block) for block in model.blocks]
    layers = [part.sublayer for x in blocks for part in (x.attention, x.feed_forward)]
    for layer in (model.embedding, *layers):
        layer.register_forward_hook(lambda module, _, out: F.dropout(out, share, module.training))


def adamw(network: LanguageModel, rate: float = 1e-3) -> list[torch.optim.Optimizer]:
    """Step everything by AdamW, with nanoGPT's settings for a processor."""
    settings = {"lr": rate, "betas": (0.9, 0.99), "weight_decay": 0.1}
    return [torch.optim.AdamW(network.parameters(), **settings, fused=True)]


def muon(
    network: LanguageModel, rate: float = 0.02, dtype: torch.dtype = torch.float32
) -> list[torch.optim.Optimizer]:
    """Step the matrices of the blocks by Muon at this rate, and all else by Adam at 0.003."""
    matrices = [x for x in network.blocks.parameters() if x.dim() == 2]
    inside = set(map(id, matrices))
    others = [x for x in network.parameters() if id(x) not in inside]
    return [
        Muon(matrices, lr=rate, dtype=dtype),
        torch.optim.Adam(others, lr=3e-3, betas=(0.9, 0.95), fused=True),
    ]


@dataclass(frozen=True)
class Rung:
    """A recipe: what is trained, and how. The defaults are nanoGPT's settings for a processor.

    Source: Karpathy 2022, nanoGPT's README, "I only have a macbook"; there the steps are counted,
    and here the seconds.
    """

    title: str
    layers: int = 4
    d_model: int = 128
    heads: int = 4
    n: int = 64
    batch: int = 12
    embedding: Callable = TokenEmbedding
    positions: Callable = LearnedPositions
    block: Callable = first_block
    norm_layer: Callable = layer_norm
    tied: bool = True
    dropout: float = 0.0
    optimizers: Callable = adamw
    bfloat16: bool = False
    counts: bool = False


def ladder() -> dict[str, Rung]:
    """Return the rungs by name: each adds one idea to the one before, or tries another rate."""
    rungs = {"nanogpt": Rung("nanoGPT's settings")}

    def add(name: str, title: str, **changes: object) -> None:
        rungs[name] = replace(list(rungs.values())[-1], title=title, **changes)

    modern = {
        "block": quiet,
        "norm_layer": root_mean_square,
        "positions": no_positions,
        "tied": False,
    }
    add("modern", "+ rotary, RMSNorm, squared ReLU", **modern)
    add("windows", "+ more and longer windows", batch=32, n=128)
    add("windows_fast", "the same, at three times the rate", optimizers=partial(adamw, rate=3e-3))
    add("muon", "+ Muon", optimizers=muon)
    half = partial(muon, dtype=torch.bfloat16)
    add("bfloat16", "+ bfloat16, a wider model", bfloat16=True, optimizers=half, d_model=192)
    add("corrected", "+ the counts, to be corrected", counts=True)
    add("dropout", "+ dropout", dropout=0.1)
    return rungs


class Predictor:
    """A trained model, or counts, as probabilities of the next token."""

    def __init__(self, model: nn.Module | NGrams, n: int, bfloat16: bool = False):
        self.model, self.n, self.bfloat16 = model, n, bfloat16

    def windows(self, tokens: Tensor) -> Tensor:
        """Return them after each token of windows of at most n tokens."""
        if isinstance(self.model, NGrams):
            return self.model.probabilities(tokens)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bfloat16):
            logits = self.model(tokens)
        return logits.float().softmax(-1)

    @torch.no_grad()
    def __call__(self, tokens: Tensor) -> Tensor:
        """Return them after each token of a text of any length.

        Each is predicted from n / 2 to n tokens, as far as there are so many.
        """
        n, half = self.n, self.n // 2
        if len(tokens) <= n:
            return self.windows(tokens.unsqueeze(0))[0]
        # begin a window every n / 2 tokens, and take the second half of each
        first = torch.arange(0, len(tokens) - n, half)
        starts = torch.cat([first, torch.tensor([len(tokens) - n])])
        head = self.windows(tokens[:n].unsqueeze(0))[0, :half]
        rows = torch.cat([head, head.new_empty(len(tokens) - half, head.shape[-1])])
        for places in (starts.unsqueeze(-1) + torch.arange(n)).split(64):
            rows[places[:, half:]] = self.windows(tokens[places])[:, half:]
        return rows


def windows(length: int, n: int, batch: int, seed: int) -> Iterator[Tensor]:
    """Yield, without end, the places of batches of stretches, each place once in each pass."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        first = torch.arange(int(torch.randint(n, (1,), generator=generator)), length - n, n)
        shuffled = first[torch.randperm(len(first), generator=generator)]
        for starts in shuffled.split(batch):
            yield starts.unsqueeze(-1) + torch.arange(n)


def build(rung: Rung, tokens: Tensor, vocab: int) -> LanguageModel:
    """Make the model of a rung, untrained; counting the tokens is a part of it."""
    sizes = (rung.layers, rung.d_model, rung.heads, 4 * rung.d_model, rung.n)
    parts = {name: getattr(rung, name) for name in PARTS}
    if rung.counts:
        model = CorrectedCounts(NGrams(tokens, vocab), *sizes, **parts)
    else:
        model = LanguageModel(vocab, *sizes, **parts)
    if not rung.tied:
        untie(model)
    if rung.dropout:
        drop(model, rung.dropout)
    return model


def by_clock(seconds: float) -> Callable[[int], float]:
    """Return what tells the share of these seconds of the processor that is used, from now on."""
    start = time.process_time()
    return lambda step: (time.process_time() - start) / seconds


def by_steps(steps: int) -> Callable[[int], float]:
    """Return what tells the share of these steps that is used."""
    return lambda step: step / steps


def train(
    rung: Rung, tokens: Tensor, vocab: int, share_used: Callable[[int], float], seed: int
) -> tuple[Predictor, int]:
    """Train until its share is used; return the predictor and the number of steps.

    The learning rate rises for WARM_UP steps, stays, and falls to 0 over the last 1 - FLAT of it.
    """
    with training.seeded(seed):
        model, step = build(rung, tokens, vocab), 0
        log_counted = cross_fitted(tokens, vocab).log().half() if rung.counts else None
        optimizers = rung.optimizers(model)
        rates = [optimizer.param_groups[0]["lr"] for optimizer in optimizers]
        for step, places in enumerate(windows(len(tokens), rung.n, rung.batch, seed)):
            if (used := share_used(step)) >= 1:
                break
            share = min((step + 1) / WARM_UP, 1, (1 - used) / (1 - FLAT))
            for optimizer, rate in zip(optimizers, rates, strict=True):
                optimizer.param_groups[0]["lr"] = rate * share
            counted = () if log_counted is None else (log_counted[places].float(),)
            with torch.autocast("cpu", torch.bfloat16, enabled=rung.bfloat16):
                logits = model(tokens[places], *counted)
            loss = F.cross_entropy(logits.float().flatten(0, 1), tokens[places + 1].flatten())
            model.zero_grad()
            (loss + balance(model)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), training.CLIP)
            for optimizer in optimizers:
                optimizer.step()
    return Predictor(model.eval(), rung.n, rung.bfloat16), step
