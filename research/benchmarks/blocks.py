"""How long a block takes: from the course's formulas, with fused parts, and PyTorch's own.

python -m research.benchmarks.blocks

Forward and backward in float32, on one thread. Time is that of the processor, and each round is
divided by PyTorch's in the same round, so that other programs on the machine change little.
"""

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertLayer

from course_lib.instruments import results
from course_lib.multi_head import MultiHeadAttention
from course_lib.transformer import EncoderBlock
from course_lib.verify.torch_stacks import torch_block
from research.benchmarks import in_turn

NAME, COMMAND = "block_speed", "python -m research.benchmarks.blocks"
BATCH, N, D_MODEL, HEADS, ROUNDS = 8, 256, 512, 8, 25
THEIRS = "PyTorch's nn.TransformerEncoderLayer"
HUGGING_FACE = "transformers' BertLayer, sdpa"


def fused_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Normalise by torch's own function."""
    return F.layer_norm(x, gain.shape, gain, bias, eps)


ATTENTION = {"attention": partial(MultiHeadAttention, rule=F.scaled_dot_product_attention)}
NORM = {"norm_layer": fused_norm}
OURS = {
    "the course's formulas": {},
    "the same, norm_layer= fused": NORM,
    "the same, rule= fused": ATTENTION,
    "the same, both fused": ATTENTION | NORM,
}


def bert_layer(weights: dict[str, Tensor]) -> Callable[[Tensor], Tensor]:
    """Return the layer of Hugging Face's BERT that computes the same, with these weights."""
    config = BertConfig(
        hidden_size=D_MODEL,
        num_attention_heads=HEADS,
        intermediate_size=4 * D_MODEL,
        hidden_act="relu",
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        layer_norm_eps=1e-5,
    )
    config._attn_implementation = "sdpa"
    layer, attention = BertLayer(config), "attention.sublayer.attention"
    names = {"query": "w_q", "key": "w_k", "value": "w_v"}
    theirs = {f"attention.self.{theirs}": f"{attention}.{ours}" for theirs, ours in names.items()}
    theirs["attention.output.dense"] = f"{attention}.w_o"
    copied = {
        f"{name}.{part}": weights[f"{ours}.{part}"]
        for name, ours in theirs.items()
        for part in ("weight", "bias")
    }
    for name, i in (("intermediate.dense", 1), ("output.dense", 2)):
        copied[f"{name}.weight"] = weights[f"feed_forward.sublayer.w_{i}"].T
        copied[f"{name}.bias"] = weights[f"feed_forward.sublayer.b_{i}"]
    for name, ours in (("attention.output", "attention"), ("output", "feed_forward")):
        copied[f"{name}.LayerNorm.weight"] = weights[f"{ours}.gain"]
        copied[f"{name}.LayerNorm.bias"] = weights[f"{ours}.bias"]
    layer.load_state_dict(copied)

    def forward(x: Tensor) -> Tensor:
        out = layer(x)
        return out[0] if isinstance(out, tuple) else out

    return forward


def steps() -> dict[str, Callable[[], None]]:
    """Return what goes through each block and back; ours have the same weights."""
    torch.manual_seed(0)
    x = torch.randn(BATCH, N, D_MODEL, requires_grad=True)
    real = torch.ones(BATCH, 1, N, dtype=torch.bool)
    theirs = nn.TransformerEncoderLayer(D_MODEL, HEADS, 4 * D_MODEL, 0.0, batch_first=True)
    weights = EncoderBlock(D_MODEL, HEADS, 4 * D_MODEL).state_dict()
    blocks = {THEIRS: theirs, HUGGING_FACE: bert_layer(weights)}
    expected = torch_block(weights, HEADS, "post", x, real)
    assert torch.allclose(blocks[HUGGING_FACE](x), expected, atol=1e-4), "another output"
    for name, parts in OURS.items():
        block = blocks[name] = EncoderBlock(D_MODEL, HEADS, 4 * D_MODEL, **parts)
        block.load_state_dict(weights)
        assert torch.allclose(block(x), expected, atol=1e-4), f"{name}: another output"

    def step(block: Callable[[Tensor], Tensor]) -> None:
        block(x).square().mean().backward()

    return {name: partial(step, block) for name, block in blocks.items()}


def summed_up(taken: dict[str, list[float]]) -> dict[str, dict]:
    """Return the median milliseconds of each block, and quartiles of its rounds by PyTorch's."""
    return {
        "milliseconds": {name: round(1000 * statistics.median(x)) for name, x in taken.items()},
        "times PyTorch's": in_turn.quartiles(taken, THEIRS),
    }


def table(figures: dict) -> str:
    """Return a table: of each processor milliseconds, and how many times PyTorch's."""
    return in_turn.table(
        "a block, forward and backward",
        {
            processor: {
                "ms": {name: f"{x}" for name, x in own["milliseconds"].items()},
                "times PyTorch's": {
                    name: in_turn.shown(x) for name, x in own["times PyTorch's"].items()
                },
            }
            for processor, own in figures.items()
        },
    )


def main() -> None:
    """Print the table and keep the figures in research/results/block_speed.json."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    programs = steps()
    in_turn.seconds(programs, 2)  # the first steps load what later ones find
    figures = summed_up(in_turn.seconds(programs, ROUNDS))
    taken = time.perf_counter() - start
    in_turn.keep(NAME, figures, command=COMMAND, seconds=taken)
    print(table(results.load(NAME)["figures"]))


if __name__ == "__main__":
    sys.exit(main())
