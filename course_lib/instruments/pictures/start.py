"""Lesson 00's pictures: two machines, a head of a translator, shapes, learning rates."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from course_lib.instruments import plots
from course_lib.instruments.drawings import PART_ROLES, SMALL, Box, Diagram, Role, transformer
from course_lib.transformer import Transformer

TARGET = 2.0  # what the parameter w should become
SHOWN = 25  # steps of a training that are drawn
LAYERS, D_MODEL, HEADS, D_FF, VOCAB = 6, 512, 8, 2048, 32_000  # the base model of 2017
BLOCK = (4.0, 0.7)
Part = tuple[str, Role]


def course_map() -> None:
    """Show the outline of the Transformer with each part in its colour."""
    transformer(
        set(PART_ROLES),
        "The Transformer of 2017, all parts in colour. The encoder: embedding, positions, then N "
        "blocks of self-attention and a feed-forward network, each followed by add and norm. The "
        "decoder: embedding, positions, then N blocks of masked self-attention, cross-attention to "
        "the encoder, and a feed-forward network, then a linear layer and a softmax for the next "
        "token.",
    )


def two_machines() -> None:
    """Show a function that is written and a model that learns it from examples."""
    diagram, wide = Diagram(), (3.0, 0.8)
    yours = diagram.box("your function", (4.0, 1.6), "value", size=wide)
    model = diagram.box("a model, $w \\cdot x$", (4.0, 0), "network", size=wide)
    compare = diagram.box("compare", (9.0, 0.8), "plain", size=(2.0, 0.8))
    for machine, result in ((yours, "$y$"), (model, "a guess at $y$")):
        y = machine.at[1]
        diagram.arrow((0.4, y), machine, "$x$")
        diagram.arrow(machine, compare, result, via=[(9.0, y)])
    diagram.arrow(compare, model, "change $w$", via=[(11.2, 0.8), (11.2, -1.0), (4.0, -1.0)])
    diagram.show(
        "Two machines get the same numbers x. Your function returns y. A model with one parameter "
        "w returns w times x, its guess at y. The two are compared, and w is changed a little, so "
        "that the guess comes nearer. The model never sees the code of your function."
    )


def head(weights: Tensor, written: Sequence[str], read: Sequence[str]) -> None:
    """Show one head's weights (target, source); frame where it looks off the diagonal."""
    title = "For 'gato preto', the translator's alignment head looks at 'cat', then back at 'black'"
    figure, ax = plots.axes(title, "read: English", "written: Portuguese", size=(6.8, 4.4))
    plots.heat_map(ax, weights, written, read)
    style = {"markersize": 19, "markeredgewidth": 2, "fillstyle": "none"}
    said = []
    for row, column in ((1, 2), (2, 1), (6, 8), (7, 7)):
        ax.plot(column, row, "s", color=plots.COLOURS[1], **style)
        said.append(f"{written[row]} has {weights[row, column]:.2f} on {read[column]}")
    plots.show(
        figure,
        "Heat map of one head of the translator: rows are the Portuguese tokens, columns the "
        f"English ones. Framed, off the diagonal: {', '.join(said)}.",
    )


def with_shapes(weights: Tensor, n: int = 11, m: int = 10) -> None:
    """Show a Transformer with the shapes of a sentence of `n` tokens translated into `m`."""
    shapes, diagram = _shapes(n, m), Diagram()
    attention: Part = ("self-attention", "query")
    network: Part = ("feed-forward", "network")
    crossed = "{} × {}".format(*weights.shape)
    parts: list[Part] = [attention, network]
    read = _column(diagram, 2, "encoder", parts, f"{n} tokens: The black cat ...", shapes)
    parts = [
        ("masked self-attention", "query"),
        (f"cross-attention, {crossed}", "query"),
        network,
    ]
    began = f"{m} tokens: start, O gato preto ..."
    written = _column(diagram, 8.8, "decoder", parts, began, shapes)
    turns = [(2, 6.6), (5.6, 6.6), (5.6, 4.1)]
    diagram.arrow(read, (6.8, 4.1), shapes["encoder out"], via=turns, role="key")
    output = diagram.box("linear, softmax", (8.8, 9.6), "value", size=BLOCK)
    diagram.arrow(written, output, shapes["decoder out"], role="stream")
    diagram.arrow(output, (8.8, 10.9), shapes["logits"], role="value")
    diagram.text("a probability for each next token", (8.8, 11.2), size=SMALL)
    diagram.show(
        f"A Transformer with shapes. {n} tokens become {shapes['encoder in']}, pass {LAYERS} "
        f"encoder blocks of self-attention and feed-forward network, and stay "
        f"{shapes['encoder out']}. {m} tokens become {shapes['decoder in']} and pass {LAYERS} "
        f"decoder blocks, whose cross-attention reads what the encoder returned, with {crossed} "
        f"weights for each head; the linear layer makes {shapes['logits']}. An arrow leads around "
        "each sublayer and is added."
    )


def learning_rates(paths: Mapping[float, Sequence[float]]) -> None:
    """Show how a parameter moves from step to step, for rates 0.1, 0.4, 0.9 and 1.1."""
    title = "Rate 0.1 creeps to 2, 0.4 goes there, 0.9 jumps past it and arrives, 1.1 leaves"
    figure, ax = plots.axes(title, "step", "the parameter w", size=(7, 3.4))
    ax.axhline(TARGET, color="0.5", linestyle="--", linewidth=1)
    for row, ((rate, path), colour) in enumerate(zip(paths.items(), plots.COLOURS, strict=False)):
        ax.plot(path[:10] if rate > 1 else path, "o-", color=colour, markersize=3, linewidth=1)
        left = f" (at step 40: {path[-1]:,.0f})" if rate > 1 else ""
        ax.text(14, 6.1 - 0.8 * row, f"rate {rate}{left}", color=colour, size="small")
    ax.set(xlim=(-0.5, SHOWN + 0.5), ylim=(-5.5, 7))
    plots.show(
        figure,
        f"The parameter w at the first {SHOWN} of 40 steps, for four learning rates; the target is "
        "2. With 0.1 it rises slowly, with 0.4 it is there after three steps, with 0.9 it swings "
        "around 2 for about 18 steps and arrives, with 1.1 it swings wider in the end, and leaves "
        "the picture after 8 steps.",
    )


def _shapes(n: int, m: int) -> dict[str, str]:
    """Return what shapes go through the Transformer of 2017, as one pass of it says."""
    shapes = {}

    def keep(name: str):
        def hook(_module: nn.Module, _inputs: tuple, output: Tensor) -> None:
            shapes[name] = "{} × {}".format(*output.shape)

        return hook

    with torch.device("meta"):  # a device for shapes alone: nothing is computed
        model = Transformer(VOCAB, LAYERS, D_MODEL, HEADS, D_FF, max_length=64)
        for name, side in (("encoder", model.encoder), ("decoder", model.decoder)):
            side.embedding.register_forward_hook(keep(f"{name} in"))
            side.blocks[-1].register_forward_hook(keep(f"{name} out"))
        model.register_forward_hook(keep("logits"))
        model(torch.zeros(n).long(), torch.zeros(m).long())
    return shapes


def _column(
    diagram: Diagram,
    x: float,
    name: str,
    parts: Sequence[Part],
    tokens: str,
    shapes: Mapping[str, str],
) -> Box:
    """Draw a block of sublayers from bottom to top, each with its residual connection."""
    lower = diagram.box("embedding + positions", (x, 0), "stream", size=BLOCK)
    diagram.arrow((x, -1.2), lower)
    diagram.text(tokens, (x, -1.5), size=SMALL)
    for i, (part, role) in enumerate(parts):
        y = 1.9 + 2.2 * i
        sublayer = diagram.box(part, (x, y), role, size=BLOCK)
        norm = diagram.box("+, norm", (x, y + 1.0), "norm", size=(1.7, 0.6))
        label = shapes[f"{name} in"] if i == 0 else ""
        diagram.arrow(lower, sublayer, label, role="stream")
        diagram.arrow(sublayer, norm, role="stream")
        below, side = y - 0.55, x - 2.2
        diagram.arrow((x, below), norm, via=[(side, below), (side, y + 1.0)], role="stream")
        lower = norm
    middle, height = 2.45 + 1.1 * (len(parts) - 1), 2.2 * len(parts)
    diagram.frame(f"{name}\nblock × {LAYERS}", (x, middle), (4.8, height + 0.1))
    return lower
