"""Lesson 06's pictures: two heads over a sentence, the layer, a line in a cloud, and a circuit."""

from collections.abc import Mapping, Sequence

import torch
from matplotlib.colors import PowerNorm
from matplotlib.patches import Arc
from torch import Tensor

from course_lib.instruments import plots
from course_lib.instruments.drawings import SMALL, Diagram, Role

BLUE, ORANGE = plots.COLOURS[:2]
FAINT = 0.1  # weights below are not drawn


def two_heads(words: Sequence[str], weights: Sequence[Sequence[Sequence[float]]]) -> None:
    """Show a sentence, and what two heads look at: arcs above and below it, with arrowheads.

    `weights` are those of both heads, (n + 1, n + 1) with a first token that is not shown.
    """
    figure, ax = plots.plt.subplots(figsize=(8, 3.4))
    ends, at = 0.0, []
    for word in words:
        width = 0.55 + 0.2 * len(word.strip())
        at.append(ends + width / 2)
        ends += width
    names = ("head 1 of layer 17: the token before", "head 7 of layer 19: what followed before")
    said = []
    for rows, colour, name, side in zip(weights, (BLUE, ORANGE), names, (1, -1), strict=True):
        looked = []
        for i, row in enumerate(rows[1:]):
            for j, weight in enumerate(row[1 : i + 1]):
                if weight < FAINT:
                    continue
                wide, middle = at[i] - at[j], (at[i] + at[j]) / 2
                half = (0, 180) if side > 0 else (180, 360)
                # arcs of one width end at depths of their own
                high = 1.1 * wide**0.6 * (1 if side > 0 else 0.55 + 0.06 * i)
                arc = Arc((middle, 0.5 * side), wide, high, theta1=half[0], theta2=half[1])
                style = {"color": colour, "alpha": 0.25 + 0.75 * weight}
                arc.set(linewidth=0.4 + 2.6 * weight, **style)
                ax.add_patch(arc)
                ax.plot(at[j], 0.47 * side, "v" if side > 0 else "^", markersize=6, **style)
                looked.append(f"{words[i].strip()} at {words[j].strip()} {weight:.2f}")
        ax.text(0, 1.9 if side > 0 else -3.2, name, color=colour, va="center")
        said.append(f"{name}: {', '.join(looked)}")
    for x, word in zip(at, words, strict=True):
        ax.text(x, 0, word.strip(), ha="center", va="center")
    ax.set(xlim=(-0.1, ends + 0.1), ylim=(-3.5, 2.2))
    ax.set_axis_off()
    plots.show(
        figure,
        f"The sentence “{''.join(words)}” with arrows from tokens to those that they look at, "
        f"above for one head of SmolLM2 and below for another. {'. '.join(said)}.",
    )


def mixtures() -> None:
    """Show a token that wants two numbers, and what one head and two heads can return."""
    diagram = Diagram()
    texts = (
        "name A\nwants B and C\nnumber 0.30",
        "name B\n\nnumber 1.20",
        "name C\n\nnumber −0.40",
    )
    a, b, c = (diagram.box(x, (4.4 * i, 0), "stream", size=(3, 1.9)) for i, x in enumerate(texts))
    diagram.arrow(a, b, via=[(0, 1.6), (4.4, 1.6)], role="query")
    diagram.arrow(a, c, via=[(0, 2.3), (8.8, 2.3)], role="query")
    diagram.text("must return (1.20, −0.40)", (0, -1.4))
    diagram.box("0.5 · 1.20 + 0.5 · (−0.40) = 0.40", (1.6, -3.0), "value", size=(6.6, 0.9))
    diagram.text("one head: one mixture", (5.2, -3.0), align="left")
    diagram.box("1.20", (-0.8, -4.4), "value", size=(1.8, 0.9))
    diagram.box("−0.40", (1.6, -4.4), "value", size=(1.8, 0.9))
    diagram.text("two heads: two mixtures", (2.9, -4.4), align="left")
    diagram.show(
        "Three tokens as boxes. Token A wants B and C, and must return their numbers, 1.20 and "
        "minus 0.40. One head with weights 0.5 and 0.5 returns one mixture, 0.40. Two heads return "
        "two: 1.20 and minus 0.40."
    )


def split() -> None:
    """Show how one product makes the queries of three heads, which are then cut apart."""
    diagram, cell = Diagram(), 0.18
    diagram.matrix("$X$", (5, 12), (0, 0), "stream", axes=("$n$", "$d_{model}$"), cell=cell)
    diagram.text("×", (1.4, 0))
    for i, shift in enumerate((-0.82, 0, 0.82), start=1):
        diagram.matrix(f"$W_Q^{i}$", (12, 4), (3 + shift, 0), "query", cell=cell)
        diagram.matrix(f"$Q^{i}$", (5, 4), (6.2 + shift, 0), "query", cell=cell)
        axes = ("", "$d_k$") if i == 1 else ("", "")
        y = 1.6 * (2 - i)
        diagram.matrix("", (5, 4), (9.7, y), "query", axes=axes, cell=cell)
        diagram.text(f"head {i}", (10.2, y), size=SMALL, align="left")
    diagram.text("=", (4.6, 0))
    diagram.arrow((7.5, 0), (9.2, 0), "split")
    diagram.show(
        "X, 5 tokens by 12 columns, times three matrices W_Q of 12 by 4 side by side, gives "
        "queries of 5 by 4 for three heads side by side. Splitting makes three separate matrices "
        "of 5 by 4, one for each head."
    )


def layer() -> None:
    """Show multi-head attention from its three inputs to its output, with all shapes."""
    diagram, top = Diagram(), 4.6
    for shift in (0.5, 0.25):
        diagram.box("", (5 + shift, top + shift), "weights", size=(9, 1.1))
    middle = r"$\mathrm{softmax}(Q^i (K^i)^T / \sqrt{d_k}\,)\,V^i$   in each head $i$"
    diagram.box(middle, (5, top), "weights", size=(9, 1.1))
    roles: tuple[tuple[str, Role, str], ...] = (
        ("Q", "query", "q"),
        ("K", "key", "k"),
        ("V", "value", "k"),
    )
    for x, (name, role, n) in zip((1.6, 5, 8.4), roles, strict=True):
        below = diagram.box(role, (x, 0), "stream", size=(2, 0.8))
        linear = diagram.box(f"$W_{name}$", (x, 1.9), role, size=(2, 0.8))
        diagram.arrow(below, linear, rf"$n_{n} \times d_{{model}}$", role=role)
        shape = rf"h \times n_{n} \times d_{'v' if name == 'V' else 'k'}"
        diagram.arrow(linear, (x, top - 0.55), f"split: ${shape}$", role=role)
    output = diagram.box("$W_O$", (5, 7.6), "network", size=(2, 0.8))
    diagram.arrow((5, top + 1.05), output, r"merge: $n_q \times h d_v$", role="value")
    diagram.arrow(output, (5, 9.4), r"$n_q \times d_{model}$")
    mask = diagram.box("mask\n$n_q \\times n_k$", (12, top + 0.25), size=(1.5, 1.1))
    diagram.arrow(mask, (10, top + 0.25))
    diagram.text("one for all heads", (12, top - 0.6), size=SMALL)
    diagram.show(
        "Multi-head attention from below. Query, n_q by d_model, key and value, n_k by d_model, "
        "each pass a linear layer, and are split into h heads of n by d_k (values: d_v). Each head "
        "attends by itself; one mask, n_q by n_k, serves all. The heads are merged to n_q by "
        "h d_v, and W_O turns that into the output, n_q by d_model."
    )


def line_and_cloud(wanted: Tensor, answers: Mapping[str, Tensor]) -> None:
    """Show wanted pairs (sentences, n, 2) in grey, far ones joined to what the models answer."""
    wanted, answers = wanted.flatten(0, 1), {x: y.flatten(0, 1) for x, y in answers.items()}
    title = "One head answers on a line, two heads fill the plane"
    figure, panels = plots.panels(title, list(answers), size=(7.4, 3.9))
    far = wanted.norm(dim=-1).argsort(descending=True)[2:90:6]
    missed = []
    for ax, given, colour in zip(panels, answers.values(), (BLUE, ORANGE), strict=True):
        for pair, answer in zip(wanted[far], given[far], strict=True):
            ax.plot(*torch.stack([pair, answer]).T, "--", color="0.6", linewidth=0.8)
        ax.scatter(*wanted.T, s=10, color="0.72", linewidths=0)
        ax.scatter(*given.T, s=10, color=colour, linewidths=0)
        ax.set(xlim=(-3.4, 3.4), ylim=(-3.4, 3.4), aspect="equal", xlabel="first number")
        ax.set(xticks=range(-3, 4), yticks=range(-3, 4))
        missed.append((wanted - given).norm(dim=-1).mean().item())
    panels[0].set(ylabel="second number")
    panels[0].text(-3.3, -3.2, "grey: wanted; blue: answered", size="x-small", color="0.3")
    said = "; ".join(f"{x}: {miss:.2f}" for x, miss in zip(answers, missed, strict=True))
    plots.show(
        figure,
        "Two scatter plots of pairs of numbers. The wanted pairs are a round grey cloud. The "
        "answers of one head are all on one line through it, and dashed lines join far pairs to "
        "their answers. The answers of two heads lie on the wanted pairs. Mean distance between "
        f"wanted and answered: {said}.",
    )


def steered(whole: Tensor, silent: Tensor, shifted: Tensor) -> None:
    """Show head 19.7's weights (n, n) on a list that is read twice, after one first token.

    As they are, while head 17.1 is silent, and while it looks two tokens back.
    """
    title = (
        "Without head 17.1, head 19.7 loses its target; "
        "with 17.1 two tokens back, the target moves by one"
    )
    names = ["as it is", "head 17.1 silent", "head 17.1 looks two back"]
    figure, panels = plots.panels(title, names, size=(8, 3.1))
    length = len(whole) // 2
    for ax, weights in zip(panels, (whole, silent, shifted), strict=True):
        # a root, so that small weights are seen
        shown = weights[length + 1 :, 1 : length + 1].numpy()
        image = ax.imshow(shown, norm=PowerNorm(0.5, 0, 1))
        ax.plot([1, length - 1], [0, length - 2], ":", color=ORANGE, linewidth=1.2)
        ticks = range(0, length, 8)
        for set_ticks in (ax.set_xticks, ax.set_yticks):
            set_ticks(ticks, [str(1 + i) for i in ticks])
        ax.set(xlabel="key: first copy")
    figure.colorbar(image, ax=panels, label="weight")
    panels[0].set(ylabel="query: second copy")
    one, two = (
        [x.diagonal(further - length)[4:].mean() for x in (whole, silent, shifted)]
        for further in (1, 2)
    )
    plots.show(
        figure,
        "Three maps of head 19.7's weights, queries of the second copy by keys of the first. A "
        f"dotted line marks what followed the same token; its mean weight is {one[0]:.2f}. While "
        f"head 17.1 is silent it is {one[1]:.2f}. While that head looks two tokens back, it is "
        f"{one[2]:.2f}, and a bright line of {two[2]:.2f} is one token further.",
    )


def nine_heads(title: str, words: Sequence[str], weights: Tensor) -> None:
    """Show what the heads of one layer look at from the last of some tokens, (heads, tokens)."""
    figure, ax = plots.axes(title, "", "", size=(8, 3.6))
    rows = [f"head {i}" for i in range(1, 1 + len(weights))]
    plots.heat_map(ax, torch.cat([weights, weights.mean(0, keepdim=True)]), [*rows, "mean"], words)
    ax.axhline(len(weights) - 0.5, color="white", linewidth=3)
    most = [(words[int(row.argmax())], row.max().item()) for row in weights]
    said = [f"{row} {word} {weight:.2f}" for row, (word, weight) in zip(rows, most, strict=True)]
    plots.show(
        figure,
        f"A heat map of weights from the token {words[-1]}, a row a head, a column a token, and "
        f"the mean of the heads below them. The largest weight of each: {'; '.join(said)}.",
    )


def one_look(title: str, figures: Mapping[str, Mapping]) -> None:
    """Show the loss where the heads of each layer look at the same places: research's `one_look`.

    A dot is a text, a bar the mean.
    """
    names = {"list": "a list, read again", "sentences": "sentences"}
    rows = {"as it is": "0.6", "one look": ORANGE, "mean": BLUE}
    labels = ["as it is", "one head's look\nfor all nine", "mean of the nine\nfor all nine"]
    figure, panels = plots.panels(title, list(names.values()), size=(8, 2.5))
    said = []
    for ax, (key, name) in zip(panels, names.items(), strict=True):
        most = max(run[row] for run in figures[key]["runs"] for row in rows)
        for y, (row, colour) in enumerate(rows.items()):
            losses = [run[row] for run in figures[key]["runs"]]
            mean = sum(losses) / len(losses)
            ax.barh(y, mean, height=0.6, color=colour)
            ax.plot(losses, [y] * len(losses), "o", color="0.2", markersize=3)
            at = max(losses) + 0.03 * most
            ax.text(at, y, f"mean {mean:.1f}", va="center", size="small")
            said.append(f"{name}, {row}: {mean:.1f}")
        ax.set(xlabel="loss (nats)", ylim=(2.6, -0.6), xlim=(0, 1.3 * most), yticks=[])
    panels[0].set_yticks(range(3), labels, size="small")
    plots.show(
        figure,
        "Two panels of bars, the loss of SmolLM2 as it is, with all nine heads of each layer "
        "looking where one of them looks, and with all at the mean of the nine, three texts each. "
        f"{'; '.join(said)}.",
    )


def circuit() -> None:
    """Show the two steps of a circuit: one head leaves a note, another one looks for it."""
    diagram = Diagram()
    for x, token, below in (
        (0, "A", "an earlier A"),
        (4.0, "B", "the token after it"),
        (10.0, "A", "A, now"),
    ):
        diagram.text(below, (x, -1.0), size=SMALL)
        diagram.box(f"token {token}", (x, 0), "stream", size=(2.2, 0.8))
        diagram.arrow((x, 0.4), (x, 5.4), role="stream", width=2.5)
    note = diagram.box("“before me: A”", (4.0, 1.9), "key", size=(3.2, 0.8))
    asked = diagram.box("“who came after A?”", (10.0, 3.1), "query", size=(3.8, 0.8))
    diagram.arrow((0, 1.9), note, "head 17.1", role="value", width=2)
    diagram.arrow(asked, (4.1, 3.1), "the five heads", role="query", width=2)
    diagram.box("“next: B”", (10.0, 4.6), "value", size=(2.6, 0.8))
    diagram.arrow((4.1, 4.6), (8.7, 4.6), "and bring B", role="value", width=2)
    diagram.show(
        "Three tokens with a vertical stream each: an earlier A, the B after it, and A now. Head "
        "17.1 (layer 17, head 1) carries A into B's stream as a note, before me: A. In the five "
        "heads the query of A now, who came after A, finds that note, and brings B: next, B."
    )


def keys_and_queries(runs: Sequence[Mapping], watched: Sequence) -> None:
    """Show the watched heads' scores where their keys, or their queries, miss one head's work."""
    whole = [[run["induction"][i - 1][j - 1] for i, j in watched] for run in runs]
    rows = {"nothing is missing": whole}
    rows |= {f"{x} miss head 17.1": [run[x] for run in runs] for x in ("queries", "keys")}
    title = "The note is in the keys"
    label = "induction score (five heads, each on three texts)"
    figure, ax = plots.axes(title, label, "", size=(7.4, 2.3))
    said = []
    for y, (name, scores) in enumerate(rows.items()):
        for i, of in enumerate(zip(*scores, strict=True)):
            colour = ORANGE if name.startswith("keys") else BLUE
            ax.plot(of, [y + (i - 2) / 9] * len(of), "o", markersize=4, color=colour, alpha=0.7)
        mean = [sum(of) / len(runs) for of in zip(*scores, strict=True)]
        said.append(f"{name}: {', '.join(f'{x:.2f}' for x in mean)}")
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(xlim=(-0.02, 1.02), ylim=(len(rows) - 0.5, -0.5))
    heads = ", ".join(f"{i}.{j}" for i, j in watched)
    plots.show(figure, f"Induction scores of heads {heads}, mean of the texts. {'; '.join(said)}.")


def heads_by_layer(runs: Sequence[Mapping], previous: Sequence[int]) -> None:
    """Show the induction score of all heads by their layer, and where the head below them is."""
    scores = torch.tensor([run["induction"] for run in runs]).mean(0)
    title = f"{(scores > 0.5).sum()} of 270 heads give most of their weight to what followed"
    figure, ax = plots.axes(title, "layer", "induction score", size=(7, 3.2))
    layers = torch.arange(1, 31).unsqueeze(-1).expand_as(scores)
    ax.axvline(previous[0], color=ORANGE, linewidth=1, linestyle="--")
    ax.scatter(layers, scores, s=14, color=BLUE)
    name = f"layer {previous[0]}, head {previous[1]}:\nthe previous-token head"
    ax.text(previous[0] - 0.4, 0.85, name, color=ORANGE, ha="right", va="center")
    ax.set(ylim=(-0.02, 1), xlim=(0, 31))
    layer, head = divmod(int(scores.argmax()), 9)
    plots.show(
        figure,
        f"Induction score of 270 heads against their layer, mean of {len(runs)} texts. "
        f"{(scores > 0.5).sum()} are over 0.5; the highest is {scores.max():.2f}, layer "
        f"{layer + 1}, head {head + 1}; the median is {scores.median():.2f}. The best "
        f"previous-token head is in layer {previous[0]}.",
    )
