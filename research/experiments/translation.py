"""Lesson 11: what each step of a recipe buys in translation, and a duel with a real translator.

A measurement takes hours, and can be interrupted at any time: what is finished is kept, and a
training that is under way in the cache folder, every 100 steps.
"""

import hashlib
import io
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.data import home_assistant, store, translating
from course_lib.data.home_assistant import Pair, normalised
from course_lib.data.translating import PAD, START, STOP, Example
from course_lib.feed_forward import FeedForward
from course_lib.files.atomic import write_atomically
from course_lib.instruments import results, training
from course_lib.instruments.bootstrap import bleu_counts, bleu_of_counts
from course_lib.instruments.weights import save_weights
from course_lib.multi_head import MultiHeadAttention
from course_lib.optimizers import Muon
from course_lib.pretrained import home_translator, marian
from course_lib.transformer import DecoderBlock, EncoderBlock, Transformer
from course_lib.translation import beam_search, bleu, chrf, cut, matches, noam

LESSON = "11"
SEEDS = (0, 1, 2)

KEPT_EVERY = 100  # steps
RESAMPLED = 1000  # corpora drawn for an interval
SECONDS = 420  # of one CPU core: what the steps of each recipe take on an idle machine


@dataclass(frozen=True)
class Recipe:
    """How a model is made and trained; a batch has `most` tokens, or `pairs` of any length."""

    language: str = "de"
    vocab: int = 4000
    d_model: int = 192
    heads: int = 4
    layers: int = 3
    decoder_layers: int = 3
    norm: str = "post"
    tied: bool = False
    pairs: int = 64
    most: int = 0
    schedule: str = "noam"
    rate: float = 1.0
    muon: bool = False
    smoothing: float = 0.0
    dropout: float = 0.0
    steps: int = 0


# each row changes one thing, or a few that belong together, and keeps what was changed before it;
# its number of steps takes SECONDS
STEPS: dict[str, dict] = {
    "post-norm, a high rate": {"tied": True, "steps": 375},
    "pre-norm": {"norm": "pre", "steps": 375},
    "batches by tokens": {"most": 1200, "steps": 1050},
    "a lower rate, down to zero": {"schedule": "linear", "rate": 0.002, "steps": 1050},
    "Muon for the matrices": {"muon": True, "rate": 0.003, "steps": 720},
    "smaller in three ways": {"d_model": 128, "decoder_layers": 2, "vocab": 2000, "steps": 1850},
    "dropout": {"dropout": 0.1, "steps": 1800},
    "label smoothing": {"smoothing": 0.1},
}


def ladder() -> dict[str, Recipe]:
    """Return the recipe of each step, all steps before it included."""
    recipe, recipes = Recipe(), {}
    for name, change in STEPS.items():
        recipe = recipes[name] = replace(recipe, **change)
    return recipes


FIRST, *_ = ladder().values()
# the first two recipes again, but their rate turns at the height of the paper's, 0.0007
_warm_up = FIRST.steps // 10
_rate = noam(4000, 512, 4000) / noam(_warm_up, FIRST.d_model, _warm_up)
AT_PAPERS_PEAK = {norm: replace(FIRST, rate=_rate, norm=norm) for norm in ("post", "pre")}

# for the duel: each takes less than 20 minutes, and the tuning texts choose one of them
LAST = replace(list(ladder().values())[-1], language="pt", steps=5000)
CANDIDATES = {
    "the last recipe": LAST,
    "without dropout": replace(LAST, dropout=0.0),
    "a larger model": replace(LAST, d_model=192, steps=2800),
}
ALPHAS = (0.6, 1.0, 1.5)  # of the length penalty, chosen in the same way

# sentences from elsewhere, written for this course: nothing of them is about a home's devices
ELSEWHERE = (
    ("The cat sleeps on the chair.", "O gato dorme na cadeira."),
    ("I bought bread and milk yesterday.", "Comprei pão e leite ontem."),
    ("My sister lives in a small village.", "A minha irmã vive numa pequena aldeia."),
    ("Where is the train station?", "Onde fica a estação de comboios?"),
    ("We walked along the river until it was dark.", "Caminhámos ao longo do rio até escurecer."),
    ("She has been reading the same book for a month.", "Ela lê o mesmo livro há um mês."),
    ("The doctor said that he must rest.", "O médico disse que ele tem de descansar."),
    ("It rained all day, so we stayed at home.", "Choveu o dia todo, por isso ficámos em casa."),
    ("He wrote a letter to his grandmother.", "Ele escreveu uma carta à avó."),
    ("The children are playing in the garden.", "As crianças estão a brincar no jardim."),
)


# quotation marks of one held-out text that Firefox's translator has never seen
PLAIN = str.maketrans({"’": "'", "„": '"', "“": '"'})


def new(recipe: Recipe, vocab: int, seed: int) -> Transformer:
    """Return a model of the course's parts; torch's own attention and norm make it quicker."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, mask)

    def norm_layer(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], gain, bias)

    parts = {
        "attention": lambda d_model, heads: MultiHeadAttention(d_model, heads, rule=attend),
        "feed_forward": FeedForward,
        "norm_layer": norm_layer,
    }
    with training.seeded(seed):
        model = Transformer(
            vocab,
            recipe.layers,
            recipe.d_model,
            recipe.heads,
            4 * recipe.d_model,
            translating.MAX_LENGTH,
            "pre" if recipe.norm == "pre" else "post",
            recipe.tied,
            encoder_block=partial(EncoderBlock, **parts),
            decoder_block=partial(DecoderBlock, **parts),
        )
    model.decoder.blocks = model.decoder.blocks[: recipe.decoder_layers]
    for name, layer in model.named_modules():
        if name.endswith("sublayer") and recipe.dropout:
            layer.register_forward_hook(partial(_drop, recipe.dropout))
    return model


def _drop(share: float, layer: nn.Module, inputs: tuple, output: Tensor) -> Tensor:
    return F.dropout(output, share, layer.training)


def batches(recipe: Recipe, some: Sequence[Example], seed: int):
    """Yield batches without end: by tokens, or of so many pairs in any order."""
    if recipe.most:
        yield from translating.batches(some, recipe.most, seed)
    draw = random.Random(seed)
    while True:
        shuffled = draw.sample(some, len(some))
        for begin in range(0, len(shuffled), recipe.pairs):
            yield translating.stack(shuffled[begin : begin + recipe.pairs])


def optimizers_of(recipe: Recipe, model: Transformer) -> list[torch.optim.Optimizer]:
    """Return Adam, and Muon for the blocks' matrices where the recipe asks for it."""
    parameters = dict(model.named_parameters())
    matrices = [p for name, p in parameters.items() if ".blocks." in name and p.dim() == 2]
    if not recipe.muon:
        matrices = []
    chosen = set(map(id, matrices))
    others = [p for p in parameters.values() if id(p) not in chosen]
    adam = torch.optim.AdamW(others, lr=recipe.rate, betas=(0.9, 0.98), fused=True)
    return [adam, Muon(matrices, lr=0.02)] if matrices else [adam]


def share_of_rate(recipe: Recipe, step: int, steps: int) -> float:
    """Return the factor on the learning rate: the paper's, or up in a tenth and down to zero."""
    warm_up = max(1, steps // 10)
    if recipe.schedule == "noam":
        return noam(step, recipe.d_model, warm_up)
    return min(step / warm_up, (steps - step) / (steps - warm_up))


def train(recipe: Recipe, seed: int) -> tuple[Transformer, Tokenizer, dict]:
    """Train one model, going on where an interrupted run was kept; say what it took."""
    learning = home_assistant.split(recipe.language).learning
    pieces = translating.learn_pieces((text for pair in learning for text in pair), recipe.vocab)
    some = translating.examples(pieces, learning)
    model = new(recipe, pieces.get_vocab_size(), seed)
    few = list(islice(batches(recipe, some, seed), 50))
    steps = recipe.steps
    optimizers = optimizers_of(recipe, model)
    tops = [optimizer.param_groups[0]["lr"] for optimizer in optimizers]
    file = _file(recipe, seed)
    taken, spent, losses = _resume(file, model, optimizers)
    model.train()
    torch.manual_seed(seed + taken)
    for step, batch in enumerate(islice(batches(recipe, some, seed), taken, steps), taken + 1):
        start = time.process_time()
        for optimizer, top in zip(optimizers, tops, strict=True):
            optimizer.param_groups[0]["lr"] = top * share_of_rate(recipe, step, steps)
        loss = translating.next_token_loss(model, batch, recipe.smoothing, loss=_loss)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), training.CLIP)
        for optimizer in optimizers:
            optimizer.step()
        losses.append(round(loss.item(), 3))
        spent += time.process_time() - start
        if step % KEPT_EVERY == 0 or step == steps:
            _keep(file, step, spent, losses, model, optimizers)
    model.eval()
    took = {
        "steps": steps,
        "pairs_seen": round(steps * sum(len(batch[0]) for batch in few) / len(few)),
        "parameters": sum(p.numel() for p in set(model.parameters())),
        "cpu_seconds": round(spent, 1),
        "padding": round(_padding(few), 3),
        "losses": [round(sum(x) / len(x), 3) for x in _tenths(losses)],
    }
    return model, pieces, took


def _loss(logits: Tensor, targets: Tensor, smoothing: float, ignore: int) -> Tensor:
    flat = logits.flatten(0, -2), targets.flatten()
    return F.cross_entropy(*flat, label_smoothing=smoothing, ignore_index=ignore)


def _padding(some: list) -> float:
    sides = [side for source, target, _ in some for side in (source, target)]
    return sum((side == PAD).sum().item() for side in sides) / sum(side.numel() for side in sides)


def _tenths(losses: list[float]) -> list[list[float]]:
    size = max(1, len(losses) // 10)
    return [losses[i : i + size] for i in range(0, len(losses) - size + 1, size)]


def _file(recipe: Recipe, seed: int) -> Path:
    name = hashlib.sha256(repr((recipe, seed)).encode()).hexdigest()[:16]
    return store.cache_folder() / "trained" / f"translation-{recipe.language}-{name}.pt"


def _keep(file: Path, step, spent, losses, model, optimizers) -> None:
    buffer = io.BytesIO()
    states = [optimizer.state_dict() for optimizer in optimizers]
    torch.save([step, spent, losses, model.state_dict(), states], buffer)
    write_atomically(file, buffer.getvalue())


def _resume(file: Path, model, optimizers) -> tuple[int, float, list[float]]:
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        return 0, 0.0, []
    step, spent, losses, weights, states = torch.load(file, weights_only=True)
    model.load_state_dict(weights)
    for optimizer, state in zip(optimizers, states, strict=True):
        optimizer.load_state_dict(state)
    return step, spent, losses


def scores(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Return BLEU and chrF."""
    return {
        "bleu": round(bleu([*map(cut, hypotheses)], [*map(cut, references)]), 2),
        "chrf": round(chrf(hypotheses, references), 2),
    }


@torch.no_grad()
def nats(model: Transformer, pieces: Tokenizer, pairs: Sequence[Pair]) -> float:
    """Return the loss without smoothing in nats a character, whatever the vocabulary."""
    batch = translating.stack(translating.examples(pieces, pairs))
    tokens = (batch[1] != PAD).sum().item()
    mean = translating.next_token_loss(model, batch, loss=_loss).item()
    return round(mean * tokens / sum(len(target) for _, target in pairs), 4)


def run(recipe: Recipe, seed: int) -> dict:
    """Train one model; return its loss on held-out pairs, and the scores of what it writes."""
    model, pieces, took = train(recipe, seed)
    pairs = home_assistant.split(recipe.language).held_out
    sources, references = zip(*pairs, strict=True)
    written = translating.translate(model, pieces, sources)
    return took | {"nats": nats(model, pieces, pairs)} | scores(written, references)


def leaks(language: str) -> int:
    """Count the held-out or tuning pairs of which a side, normalised, is in training."""
    learning, *others = home_assistant.split(language)
    known = [{normalised(pair[side]) for pair in learning} for side in (0, 1)]
    return sum(
        any(normalised(pair[side]) in known[side] for side in (0, 1))
        for part in others
        for pair in part
    )


def interval(ours: list[str], theirs: list[str], references: list[str]) -> dict:
    """Draw the sentences anew, with replacement, and score both translators on the same draws.

    Returns the middle 95 % of each score and of the differences. Source: Koehn 2004.
    """
    draw = torch.Generator().manual_seed(0)
    count = len(references)
    chosen = torch.randint(count, (RESAMPLED, count), generator=draw)
    # how often each sentence is drawn, times what it adds to the counts of a corpus
    drawn = F.one_hot(chosen, count).sum(1).double()
    middle = {}
    for name, counts, score in (
        ("bleu", bleu_counts, bleu_of_counts),
        ("chrf", _counts_of_chrf, _chrf_of_counts),
    ):
        found = [
            score(drawn @ torch.tensor([*map(counts, side, references)], dtype=torch.float64))
            for side in (ours, theirs)
        ]
        columns = {"ours": found[0], "theirs": found[1], "difference": found[0] - found[1]}
        ends = torch.tensor([0.025, 0.975], dtype=torch.float64)
        middle[name] = {
            who: [round(end, 2) for end in column.quantile(ends).tolist()]
            for who, column in columns.items()
        }
    return middle


def _counts_of_chrf(hypothesis: str, reference: str) -> list[int]:
    """Return matches, n-grams of the hypothesis and of the reference, for n from 1 to 6."""
    h, r = (text.replace(" ", "") for text in (hypothesis, reference))
    orders = range(1, 7)
    pairs = [matches([*h], [*r], n) if len(r) >= n else (0, 0) for n in orders]
    of_reference = [max(0, len(r) - n + 1) for n in orders]
    return [*(found for found, _ in pairs), *(there for _, there in pairs), *of_reference]


def _chrf_of_counts(sums: Tensor) -> Tensor:
    p, r = (sums[:, :6] / sums[:, i : i + 6].clamp(min=1) for i in (6, 12))
    p, r = p.mean(-1), r.mean(-1)
    return 100 * 5 * p * r / (4 * p + r).clamp(min=1e-12)


def tuned(model: Transformer, pieces: Tokenizer, pairs: Sequence[Pair]) -> dict:
    """Score what a model writes for the tuning texts, greedily and by each length penalty."""
    sources, references = map(list, zip(*pairs, strict=True))
    by_beam = {f"{alpha}": _by_beam(model, pieces, sources, alpha) for alpha in ALPHAS}
    return {
        "nats": nats(model, pieces, pairs),
        "greedy": scores(translating.translate(model, pieces, sources), references),
        "beam": {alpha: scores(written, references) for alpha, written in by_beam.items()},
    }


def _by_beam(model: Transformer, pieces: Tokenizer, sources: list[str], alpha: float) -> list[str]:
    search = partial(beam_search, alpha=alpha)
    return translating.translate_by_beam(model, pieces, sources, beam_search=search)


def duel() -> dict:
    """Let our own Portuguese model and Firefox's translate the same sentences.

    Of the candidates, the one with the best BLEU on the tuning texts, by its best length penalty.
    """
    split = home_assistant.split("pt")
    trained, candidates = {}, {}
    for name, recipe in CANDIDATES.items():
        model, pieces, took = train(recipe, SEEDS[0])
        trained[name] = model, pieces
        run = {"settings": asdict(recipe), "training": took}
        candidates[name] = run | tuned(model, pieces, split.tuning)
    _, chosen, alpha = max(
        (score["bleu"], name, float(alpha))
        for name, candidate in candidates.items()
        for alpha, score in candidate["beam"].items()
    )
    model, pieces = trained[chosen]
    save_weights(home_translator.NAME, model)
    model = home_translator.load()  # in 16 bits, as everybody will have it
    real = marian.load("en-pt")
    brazilian = dict(home_assistant.pairs("pt-BR"))
    corpora = {
        "held out": split.held_out,
        "held out, Brazilian references": [
            (source, brazilian[source]) for source, _ in split.held_out if source in brazilian
        ],
        "elsewhere": list(ELSEWHERE),
    }
    figures: dict = {"candidates": candidates, "chosen": chosen, "alpha": alpha, "corpora": {}}
    for name, pairs in corpora.items():
        sources, references = map(list, zip(*pairs, strict=True))
        ours = _by_beam(model, pieces, sources, alpha)
        with torch.no_grad():
            theirs = [real.translate(source.translate(PLAIN)) for source in sources]
        figures["corpora"][name] = {
            "pairs": len(pairs),
            "ours": scores(ours, references),
            "theirs": scores(theirs, references),
            "interval": interval(ours, theirs, references),
            "shown": [list(row) for row in zip(sources, references, ours, theirs, strict=True)],
        }
    sources, references = map(list, zip(*split.held_out, strict=True))
    figures["greedy"] = scores(translating.translate(model, pieces, sources), references)
    figures["widths"] = by_width(model, pieces, split.held_out)
    written = [_theirs_by_beam(real, source.translate(PLAIN)) for source in sources]
    figures["theirs_by_beam"] = scores(written, references) | {"alpha": 1.0, "written": written}
    return figures


@torch.no_grad()
def by_width(model: Transformer, pieces: Tokenizer, pairs: Sequence[Pair]) -> dict:
    """Search by beams of several widths, without a length penalty: what is found, and its BLEU."""
    references, found = [cut(reference) for _, reference in pairs], {}
    for width in (1, 2, 4, 16):
        best = []
        for source in translating.encode(pieces, [source for source, _ in pairs]):
            step, most = translating.next_tokens(model, source), translating.longest(source)
            best.append(beam_search(step, START, STOP, width, most, 0.0))
        texts = [cut(translating.decode(pieces, tokens)) for tokens, _ in best]
        found[f"{width}"] = {
            "log_probability": round(sum(total for _, total in best) / len(best), 3),
            "tokens": round(sum(len(tokens) for tokens, _ in best) / len(best), 3),
            "bleu": round(bleu(texts, references), 2),
        }
    return found


@torch.no_grad()
def _theirs_by_beam(real: marian.Marian, source: str) -> str:
    """Translate as ours does: by a beam of 4. The penalty is not tuned; 0 gives nearly the same."""
    tokens = real.encode(source)
    memory = real.read(tokens)

    def step(prefixes: Tensor) -> Tensor:
        return real(prefixes, memory.expand(len(prefixes), -1, -1))[:, -1].log_softmax(-1)

    most = min(marian.MAX_LENGTH, marian.MOST_A_TOKEN * len(tokens))
    written, _ = beam_search(step, marian.START, marian.STOP, 4, most, 1.0)
    return real.tokenizer.decode(written)


def measure() -> dict:
    """Return the duel in Portuguese, and the ladder of German recipes, one seed after the other."""
    steps = {name: {"settings": asdict(recipe), "runs": {}} for name, recipe in ladder().items()}
    settings = {
        "seconds": SECONDS,
        "recipes": {name: row["settings"] for name, row in steps.items()},
        "candidates": {name: asdict(recipe) for name, recipe in CANDIDATES.items()},
    }
    once = partial(results.once, "translation", settings)  # what an ended run has measured is kept
    figures = {
        "seconds": SECONDS,
        "leaks": {language: leaks(language) for language in ("de", "pt")},
        "sizes": {
            language: [len(part) for part in home_assistant.split(language)]
            for language in ("de", "pt")
        },
        "duel": once("duel", duel),
        "steps": steps,
        "at the paper's peak": {
            norm: {"settings": asdict(recipe), "runs": {}}
            for norm, recipe in AT_PAPERS_PEAK.items()
        },
    }
    for seed in SEEDS:
        for name, recipe in ladder().items():
            steps[name]["runs"][str(seed)] = once(f"{name}, {seed}", partial(run, recipe, seed))
        for norm, recipe in AT_PAPERS_PEAK.items():
            found = once(f"{norm} at the paper's peak, {seed}", partial(run, recipe, seed))
            figures["at the paper's peak"][norm]["runs"][str(seed)] = found
    return figures


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = []
    for name, row in figures["steps"].items():
        runs = list(row["runs"].values())
        each = ", ".join(f"{one['bleu']:.1f}" for one in runs)
        lines.append(f"{name:28} {runs[0]['steps']:5} steps, BLEU {each}" if runs else name)
    for name, corpus in figures.get("duel", {}).get("corpora", {}).items():
        ours, theirs = (corpus[who] for who in ("ours", "theirs"))
        lines.append(f"{name:32} {corpus['pairs']:4} pairs: ours {ours}, theirs {theirs}")
    return lines
