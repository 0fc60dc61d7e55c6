"""Lesson 04: small language models, read at eight times the length that they were trained on."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib.data import characters
from course_lib.encoder import EncoderBlock
from course_lib.instruments import training
from course_lib.instruments.position_schemes import NoPositions, Relative, Rotary, Sinusoidal
from course_lib.masks import causal_mask
from course_lib.multi_head import MultiHeadAttention
from course_lib.positions import alibi

LESSON = "04"
SEEDS = (0, 1, 2)
N, STRETCH, LONGEST = 32, 4, 256  # characters: trained on, repaired for N * STRETCH, read
SIZES = {"layers": 2, "d_model": 64, "heads": 4}
TRAINING = {"batch": 32, "steps": 600, "learning_rate": 0.005}
TUNING = {"batch": 8, "steps": 20, "learning_rate": 0.001}  # as many characters a step
TESTED, WINDOW = 128, 16  # stretches of held-out text; positions that share a mean


class SlopedHeads(NoPositions):
    """Give each head its own slope. Source: Press et al. 2022, section 3."""

    def attend(self, q, k, v, mask=None, tree=None):
        """Let the words meet; q and k have an axis of heads before that of the words."""
        heads, n, d_k = q.shape[-3:]
        scores = dot_scores(q, k) / d_k**0.5 + alibi(n, n, heads)
        return weighted_sum(softmax(scores, mask), v)


# by which factor positions are divided, and which pairs of columns keep theirs
REPAIRS = {
    "as it was": {"stretch": 1.0, "seen": 0},
    "all hands interpolated": {"stretch": float(STRETCH), "seen": 0},
    "slow hands interpolated": {"stretch": float(STRETCH), "seen": N},
}
SCHEMES = {
    "sinusoidal": Sinusoidal,
    "relative": lambda: Relative(8, SIZES["d_model"] // SIZES["heads"]),
    "rotary": Rotary,
    "alibi": SlopedHeads,
}


class LanguageModel(nn.Module):
    """Predict the next character: pre-norm blocks under a causal mask, with a position scheme."""

    def __init__(self, scheme: NoPositions, vocab: int):
        super().__init__()
        d_model, heads = SIZES["d_model"], SIZES["heads"]
        self.scheme = scheme
        self.table = nn.Parameter(torch.randn(vocab, d_model) / d_model**0.5)

        def attention(d_model: int, heads: int) -> nn.Module:
            return MultiHeadAttention(d_model, heads, rule=scheme.attend)

        self.blocks = nn.ModuleList(
            EncoderBlock(d_model, heads, 4 * d_model, "pre", attention=attention)
            for _ in range(SIZES["layers"])
        )
        self.last_norm = nn.LayerNorm(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of each next character."""
        x = self.scheme.encode(self.table.shape[-1] ** 0.5 * self.table[tokens])
        for block in self.blocks:
            x = block(x, causal_mask(tokens.shape[-1]))
        return self.last_norm(x) @ self.table.mT


def losses(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the cross-entropy of each next character, in nats."""
    tokens, following = batch
    return F.cross_entropy(model(tokens).mT, following, reduction="none")


def mean_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the loss that training lowers."""
    return losses(model, batch).mean()


def train(model: LanguageModel, n: int, settings: dict, seed: int) -> None:
    """Train on stretches of n characters."""
    batches = characters.batches(characters.split()[0], n, settings["batch"], seed)
    steps, rate = settings["steps"], settings["learning_rate"]
    training.train(model, batches, mean_loss, steps=steps, learning_rate=rate, seed=seed)


@torch.no_grad()
def by_position(model: LanguageModel) -> list[float]:
    """Return the mean loss of each window of positions, on held-out text."""
    _, text = characters.split()
    starts = torch.arange(TESTED).unsqueeze(-1) * (len(text) // TESTED - LONGEST)
    stretches = text[starts + torch.arange(LONGEST + 1)]
    loss = losses(model, (stretches[:, :-1], stretches[:, 1:])).mean(0)
    return loss.view(-1, WINDOW).mean(-1).tolist()


def measure_one(scheme: str, seed: int) -> dict[str, list[float]]:
    """Train one model, and repair a rotary one for N * STRETCH characters."""
    with training.seeded(seed):
        model = LanguageModel(SCHEMES[scheme](), len(characters.vocab()))
    train(model, N, TRAINING, seed)
    curves = {scheme: by_position(model)}
    if scheme != "rotary":
        return curves
    learned = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name, repair in REPAIRS.items():
        model.load_state_dict(learned)
        vars(model.scheme).update(repair)
        curves[f"{name}, 0 steps"] = by_position(model)
        train(model, N * STRETCH, TUNING, seed + 100)
        curves[f"{name}, {TUNING['steps']} steps"] = by_position(model)
    return curves


def measure() -> dict:
    """Return the loss by position, for each scheme and each repair."""
    runs = [
        {name: curve for scheme in SCHEMES for name, curve in measure_one(scheme, seed).items()}
        for seed in SEEDS
    ]
    return {
        "trained on": N,
        "repaired for": N * STRETCH,
        "window": WINDOW,
        "settings": {"sizes": SIZES, "training": TRAINING, "tuning": TUNING, "tested": TESTED},
        "loss": {name: [run[name] for run in runs] for name in runs[0]},
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    window = figures["window"]
    places = [figures["trained on"] // window - 1, figures["repaired for"] // window - 1, -1]
    lines = [f"{'loss up to position':32}{N:>7}{N * STRETCH:>7}{LONGEST:>7}"]
    for name, runs in figures["loss"].items():
        means = [sum(run[place] for run in runs) / len(runs) for place in places]
        lines.append(f"{name:32}" + "".join(f"{mean:7.2f}" for mean in means))
    return lines
