"""Lesson 10: what each step buys, from counting and nanoGPT's settings to a model of both.

Every rung gets the same seconds of the processor on one thread, its counting included, and adds
one idea to the rung before it. The loss is that of the held-out tenth, measured off the clock. A
run can be ended at any time: what is in results/language_model.json is not measured again.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.add_norm import layer_norm, rms_norm
from course_lib.corrected_counts import CorrectedCounts
from course_lib.data import shakespeare
from course_lib.encoder import EncoderBlock
from course_lib.feed_forward import FeedForward, gelu_feed_forward
from course_lib.hashed_ngrams import HashedEmbedding
from course_lib.instruments import results, training
from course_lib.language_model import LanguageModel, TokenEmbedding
from course_lib.multi_head import MultiHeadAttention
from course_lib.muon import Muon
from course_lib.ngrams import NGrams, cross_fitted, occurrences
from course_lib.positions import LearnedPositions, rotary
from course_lib.squared_relu import SquaredReLU

LESSON = "10"
NAME = "language_model"
COMMAND = "make results LESSON=10"
SEEDS = (0, 1, 2)
CHARACTERS = 1_115_394  # of the complete works: as many as tiny Shakespeare has
HELD_OUT = 0.1
SECONDS = 341.0
PARTS = ("embedding", "positions", "block", "norm_layer")
WARM_UP = 20  # steps in which the learning rate rises
FLAT = 0.3  # of the time, after which it falls to 0
WRITTEN, TEMPERATURE = 200, 0.8  # characters of a sample


def fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attend to what came before, by torch's own kernel."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def turned(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attend to what came before, with rotary positions, and queries and keys of one size.

    Source: Su et al. 2021 (positions); Henry et al. 2020 (sizes). In bfloat16, on a processor,
    these products take a third of the time that torch's own kernel takes.
    """
    *batch, n, d_k = q.shape
    size, places = torch.ones(d_k), torch.arange(n)
    q, k = (rotary(rms_norm(x, size).to(v), places).reshape(-1, n, d_k) for x in (q, k))
    future = torch.full((n, n), -1e4, dtype=v.dtype).triu(1)
    weights = torch.baddbmm(future, q, k.mT, alpha=1.5 / d_k**0.5).softmax(-1)
    return (weights @ v.reshape(-1, n, d_k)).view(*batch, n, d_k)


def block(rule: Callable, feed_forward: Callable, norm_layer: Callable, *sizes) -> EncoderBlock:
    """Make a block of these parts."""
    attention = partial(MultiHeadAttention, rule=rule)
    return EncoderBlock(
        *sizes, attention=attention, feed_forward=feed_forward, norm_layer=norm_layer
    )


def first_block(*sizes) -> EncoderBlock:
    """Make a block as in GPT-2."""
    return block(fused, partial(FeedForward, network=gelu_feed_forward), layer_norm, *sizes)


def quiet(*sizes) -> EncoderBlock:
    """Make a modern block that adds nothing yet: both of its output matrices are zeros.

    Source: Zhang et al. 2019, section 3; Bachlechner et al. 2021.
    """
    made = block(turned, SquaredReLU, rms_norm, *sizes)
    nn.init.zeros_(made.attention.sublayer.attention.w_o.weight)
    nn.init.zeros_(made.feed_forward.sublayer.w_2.weight)
    return made


def no_positions(max_length: int, d_model: int) -> nn.Module:
    """Add nothing: rotary attention knows the positions."""
    return nn.Identity()


def adam(network: LanguageModel, rate: float = 1e-3) -> list[torch.optim.Optimizer]:
    """Step everything by AdamW, with nanoGPT's settings for a processor."""
    settings = {"lr": rate, "betas": (0.9, 0.99), "weight_decay": 0.1}
    return [torch.optim.AdamW(network.parameters(), **settings, fused=True)]


def muon(network: LanguageModel) -> list[torch.optim.Optimizer]:
    """Step the matrices of the blocks by Muon, and all else by Adam."""
    matrices = [x for x in network.blocks.parameters() if x.dim() == 2]
    inside = set(map(id, matrices))
    others = [x for x in network.parameters() if id(x) not in inside]
    return [
        Muon(matrices, lr=0.02),
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
    optimizers: Callable = adam
    bfloat16: bool = False
    counts: bool = False


def ladder() -> dict[str, Rung]:
    """Return the rungs by name, each with one idea more than the one before."""
    rungs = {"nanogpt": Rung("nanoGPT's settings")}

    def add(name: str, title: str, **changes: object) -> None:
        rungs[name] = replace(list(rungs.values())[-1], title=title, **changes)

    modern = {"block": quiet, "norm_layer": rms_norm, "positions": no_positions}
    add("modern", "+ rotary, RMSNorm, squared ReLU", **modern)
    add("muon", "+ Muon, larger batches", optimizers=muon, batch=32, n=128)
    add("bfloat16", "+ bfloat16, a wider model", bfloat16=True, d_model=192)
    add("hashed", "+ embeddings of n-grams", embedding=HashedEmbedding)
    add("counts", "+ Kneser-Ney's logits", counts=True)
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
        found = torch.cat([head, head.new_empty(len(tokens) - half, head.shape[-1])])
        for places in (starts.unsqueeze(-1) + torch.arange(n)).split(64):
            found[places[:, half:]] = self.windows(tokens[places])[:, half:]
        return found


def windows(length: int, n: int, batch: int, seed: int) -> Iterator[Tensor]:
    """Yield, without end, the places of batches of stretches, each place once in each pass."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        first = torch.arange(int(torch.randint(n, (1,), generator=generator)), length - n, n)
        shuffled = first[torch.randperm(len(first), generator=generator)]
        for starts in shuffled.split(batch):
            yield starts.unsqueeze(-1) + torch.arange(n)


def train(
    rung: Rung, tokens: Tensor, vocab: int, seconds: float, seed: int
) -> tuple[Predictor, int]:
    """Train for these seconds of the processor; return the predictor and the number of steps."""
    start = time.process_time()
    sizes = (rung.layers, rung.d_model, rung.heads, 4 * rung.d_model, rung.n)
    parts = {name: getattr(rung, name) for name in PARTS}
    log_counted = cross_fitted(tokens, vocab).log().half() if rung.counts else None
    with training.seeded(seed):
        if rung.counts:
            model = CorrectedCounts(NGrams(tokens, vocab), *sizes, **parts)
        else:
            model = LanguageModel(vocab, *sizes, **parts)
    optimizers = rung.optimizers(model)
    rates = [optimizer.param_groups[0]["lr"] for optimizer in optimizers]
    for step, places in enumerate(windows(len(tokens), rung.n, rung.batch, seed)):
        used = (time.process_time() - start) / seconds
        if used >= 1:
            break
        # rise, stay, and fall to 0 by the clock
        share = min((step + 1) / WARM_UP, 1, (1 - used) / (1 - FLAT))
        for optimizer, rate in zip(optimizers, rates, strict=True):
            optimizer.param_groups[0]["lr"] = rate * share
        counted = () if log_counted is None else (log_counted[places].float(),)
        with torch.autocast("cpu", torch.bfloat16, enabled=rung.bfloat16):
            logits = model(tokens[places], *counted)
        loss = F.cross_entropy(logits.float().flatten(0, 1), tokens[places + 1].flatten())
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), training.CLIP)
        for optimizer in optimizers:
            optimizer.step()
    return Predictor(model.eval(), rung.n, rung.bfloat16), step


def held_out_loss(predictor: Predictor, tokens: Tensor) -> float:
    """Return the mean loss in nats of all tokens but the first."""
    found = predictor(tokens[:-1]).gather(-1, tokens[1:].unsqueeze(-1))
    return -found.log().mean().item()


def write(predictor: Predictor, tokens: Tensor, count: int, seed: int) -> Tensor:
    """Write on, a token at a time, each drawn at the temperature TEMPERATURE."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        chances = predictor(tokens[-predictor.n :])[-1]
        drawn = torch.multinomial(chances ** (1 / TEMPERATURE), 1, generator=generator)
        tokens = torch.cat([tokens, drawn])
    return tokens[-count:]


def text() -> str:
    """Return the characters that all rungs learn from and are measured on."""
    return shakespeare.complete_works()[:CHARACTERS]


def split() -> tuple[Tensor, Tensor, str]:
    """Return the tokens to learn from, those held out, and the vocabulary."""
    vocab = "".join(sorted(set(text())))
    numbers = {character: number for number, character in enumerate(vocab)}
    tokens = torch.tensor([numbers[character] for character in text()])
    cut = round((1 - HELD_OUT) * len(tokens))
    return tokens[:cut], tokens[cut:], vocab


def sample(predictor: Predictor, held_out: Tensor, vocab: str) -> str:
    """Return what it writes after the first held-out line, by a fixed seed."""
    line = 1 + held_out.tolist().index(vocab.index("\n"))
    return "".join(vocab[x] for x in write(predictor, held_out[:line], WRITTEN, seed=0).tolist())


def measure_counting() -> dict[str, Any]:
    """Count, plainly and as Kneser and Ney do; return losses, seconds and samples."""
    tokens, held_out, vocab = split()
    found = {}
    for name, settings in {"plain": (5, occurrences), "kneser_ney": (7,)}.items():
        start = time.process_time()
        predictor = Predictor(NGrams(tokens, len(vocab), *settings), n=256)
        seconds = time.process_time() - start
        loss = round(held_out_loss(predictor, held_out), 4)
        written = sample(predictor, held_out, vocab)
        found[name] = {"loss": loss, "seconds": round(seconds, 1), "sample": written}
    return found


def measure_one(rung: Rung, seed: int) -> dict[str, Any]:
    """Train one rung; return what it came to."""
    tokens, held_out, vocab = split()
    start = time.process_time()
    predictor, steps = train(rung, tokens, len(vocab), SECONDS, seed)
    seconds = time.process_time() - start
    return {
        "loss": round(held_out_loss(predictor, held_out), 4),
        "seconds": round(seconds, 1),
        "steps": steps,
        "passes": round(steps * rung.batch * rung.n / len(tokens), 2),
        "parameters": sum(parameter.numel() for parameter in predictor.model.parameters()),
        "sample": sample(predictor, held_out, vocab),
    }


def measure() -> dict[str, Any]:
    """Measure what is not kept yet, all rungs of a seed before the next seed; keep each at once."""
    torch.set_num_threads(1)
    figures = _kept() or {"seconds": SECONDS, "counting": measure_counting(), "rungs": {}}
    for seed in SEEDS:
        for name, rung in ladder().items():
            runs = figures["rungs"].setdefault(name, {"title": rung.title, "runs": {}})["runs"]
            if str(seed) not in runs:
                runs[str(seed)] = measure_one(rung, seed)
                print(f"{rung.title}, seed {seed}: {runs[str(seed)]['loss']} nats", flush=True)
                _keep(figures)
    return figures


def _kept() -> dict[str, Any] | None:
    try:
        return results.load(NAME)["figures"]
    except FileNotFoundError:
        return None


def _keep(figures: dict[str, Any]) -> None:
    runs = [run for rung in figures["rungs"].values() for run in rung["runs"].values()]
    seconds = sum(run["seconds"] for run in runs)
    whole = [s for s in SEEDS if all(str(s) in r["runs"] for r in figures["rungs"].values())]
    results.save(NAME, figures, command=COMMAND, seeds=whole, seconds=seconds)


def table(figures: dict[str, Any]) -> list[str]:
    """Return a line for each rung: its title, and the loss of each seed."""
    lines = [f"{'nats a character, held out':34} by seed"]
    for name, counted in figures["counting"].items():
        lines.append(f"{'counting, ' + name:34} {counted['loss']:.3f}")
    for rung in figures["rungs"].values():
        losses = "  ".join(f"{run['loss']:.3f}" for run in rung["runs"].values())
        lines.append(f"{rung['title']:34} {losses}")
    return lines
