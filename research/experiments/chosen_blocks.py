"""Lesson 14: does a query that chooses nine of 32 blocks find a list as well as with all of them?

SmolLM2 reads lists of random tokens twice. Each query sees the first block, its own, the one before
it, and six blocks with the best mean keys, or as many at random.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.efficient.chosen_blocks import choose_blocks
from course_lib.instruments import results
from course_lib.masks import causal_mask
from course_lib.pretrained import smollm2
from course_lib.self_attention import scaled_dot_product_attention

LESSON = "14"
SEEDS = (0, 1, 2)  # a list each

BLOCKS, CHOSEN = 32, 6
BLOCK_SIZES = (4, 8)  # texts of 128 and of 256 tokens
Choose = Callable[..., Tensor]


def at_random(q: Tensor, k: Tensor, block: int, chosen: int) -> Tensor:
    """Choose by vectors that have nothing to do with the text."""
    return choose_blocks(torch.randn_like(q), torch.randn_like(k), block, chosen)


def attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, choose: Choose, block: int
) -> Tensor:
    """Attend to the blocks that each query chooses, to the first one, and to the one before."""
    k, v = (x.repeat_interleave(3, dim=-3) for x in (k, v))  # three heads share a key head
    chosen = F.one_hot(choose(q, k, block=block) + 1, BLOCKS + 1).any(-2)[..., 1:]
    own = torch.arange(q.shape[-2]) // block
    always = (own == 0) | (own.unsqueeze(-1) - own == 1)
    sees = chosen.repeat_interleave(block, dim=-1) | always
    return scaled_dot_product_attention(q, k, v, sees & causal_mask(q.shape[-2]))


@torch.no_grad()
def loss_on_second(model: smollm2.SmolLM2, block: int, seed: int, choose: Choose) -> float:
    """Return the loss of the second copy of a list, in nats a token."""
    half = BLOCKS * block // 2
    generator = torch.Generator().manual_seed(seed)
    copy = torch.randint(1000, 10_000, (half - 1,), generator=generator)
    tokens = torch.cat([torch.tensor([0]), copy, copy, copy[:1]])  # 0 begins a text
    for turned in model.rules:
        turned.rule = partial(attend, choose=choose, block=block)
    torch.manual_seed(seed)  # of what is drawn at random
    return F.cross_entropy(model(tokens)[half:-1], tokens[half + 1 :]).item()


def measure() -> dict:
    """Return the losses by the size of a block, the way to choose and the list."""
    model = smollm2.load()
    ways = {
        "all": partial(choose_blocks, chosen=BLOCKS - 1),
        "chosen": partial(choose_blocks, chosen=CHOSEN),
        "random": partial(at_random, chosen=CHOSEN),
    }

    def kept(block: int, way: str, seed: int) -> float:
        key = f"{block} {way} {seed}"
        settings = {"blocks": BLOCKS, "chosen": CHOSEN}
        run = partial(loss_on_second, model, block, seed, ways[way])
        return results.once("chosen_blocks", settings, key, run)

    return {
        str(block): {way: [kept(block, way, seed) for seed in SEEDS] for way in ways}
        for block in BLOCK_SIZES
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = [f"loss on the second copy, {CHOSEN + 3} of {BLOCKS} blocks, by list"]
    for block, by_way in figures.items():
        for way, losses in by_way.items():
            lines.append(f"blocks of {block}, {way:8}" + "".join(f"{x:7.2f}" for x in losses))
    return lines
