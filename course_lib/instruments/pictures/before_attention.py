"""Lesson 01's pictures: a long word, cells, two loops, gradients, lengths, and who waits."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Literal, get_args

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from course_lib.instruments import drawings, plots
from course_lib.instruments.drawings import SMALL, Diagram

Kind = Literal["RNN", "window of three", "attention"]
State = plots.Place  # token and layer, both from 0; layer 0 is the tokens

# each sound of the long word and its letters: up to SH as the dictionary has parts of it
SPELLED = (
    "S:s UW2:u P:p ER0:er K:c AE2:a L:l AH0:i F:f R:r AE1:a JH:g AH0:i L:l IH2:i S:s "
    "T:t IH0:i K:c EH2:e K:x S: P:p IY0:i AE2:a L:l AH0:i D:d OW1:o SH:ci AH0:ou S:s"
)
WANTED, LETTERS = zip(*(pair.split(":") for pair in SPELLED.split()), strict=True)
BLUE, ORANGE, GREEN, PINK, AMBER = plots.COLOURS[:5]
LOST = "0.65"
# a network has one colour in lessons 01 and 02
READERS = {
    "one vector": ("all and joined", ORANGE),
    "attention": ("attention, all and joined", GREEN),
}


def course_map() -> None:
    """Show the map of the course with its two ends lit."""
    drawings.transformer(
        {"embedding", "linear, softmax"},
        "The Transformer of 2017 with its two ends lit: the embeddings at the bottom and the "
        "linear layer with softmax at the top. The attention, feed-forward and norm layers between "
        "them are grey: they come in later lessons.",
    )


def long_word(heard: Sequence[str]) -> None:
    """Show a long word in two lines: its letters, the sounds wanted, and those that came."""
    title = "One long word, read by a trained network: at the sixth sound it is lost"
    figure, ax = plots.axes(title, "", "", size=(8, 3.1))
    half = len(WANTED) // 2
    right = next(i for i, sound in enumerate(WANTED) if [*heard[i : i + 1]] != [sound])
    for i, (letters, wanted) in enumerate(zip(LETTERS, WANTED, strict=True)):
        x, y = i % half, -3.6 * (i // half)
        ax.text(x, y + 0.85, letters, ha="center", va="center", weight="bold")
        came = heard[i] if i < len(heard) else ""
        found = BLUE if i < right else LOST if came else ""
        rows = ((y, wanted, "0.35"), (y - 1, came, found))
        for row, sound, colour in rows:
            _tile(ax, (x, row), sound, colour)
    for name, y in (("wanted", 0), ("heard", -1), ("wanted", -3.6), ("heard", -4.6)):
        ax.text(-0.7, y, name, ha="right", va="center", size="small")
    _key(ax, -5.7, {"right so far": BLUE, "after the first wrong sound": LOST, "nothing": ""})
    ax.set(xlim=(-2.2, half - 0.4), ylim=(-6.1, 1.4))
    ax.set_axis_off()
    plots.show(
        figure,
        f"The word {''.join(LETTERS)} with the sounds that are wanted and those that a network "
        f"says, in two lines. Wanted: {' '.join(WANTED)}. Heard: {' '.join(heard)}. The first "
        f"{right} sounds are right; it says {len(heard)} of {len(WANTED)}, and then nothing.",
    )


def said(heard: Mapping[str, Sequence[str]]) -> None:
    """Show the sounds of the long word in two lines, and what networks say for each of them.

    A network's sounds are put under those that are wanted with the fewest edits.
    """
    columns, told, counts = _columns(heard.values()), [], []
    for i, (name, sounds) in enumerate(heard.items(), 1):
        counts.append(f"{sum(column[i] == column[0] != '' for column in columns)}")
        told.append(f"{name}, {counts[-1]} of {len(WANTED)} right: {' '.join(sounds)}")
    counted = f"{' and '.join(counts)} of {len(WANTED)}"
    title = f"The same long word, after training on long words: {counted} sounds are right"
    figure, ax = plots.axes(title, "", "", size=(8, 3.1))
    half = -(-len(columns) // 2)
    names = ["wanted", *heard]
    for place, column in enumerate(columns):
        line, x = divmod(place, half)
        for row, sound in enumerate(column):
            if not sound and (row == 0 or not column[0]):
                continue
            colour = "0.35" if row == 0 else BLUE if sound == column[0] else ORANGE
            y = -row - (len(names) + 0.7) * line
            _tile(ax, (x, y), sound, colour if sound else "")
    for line, (row, name) in product((0, 1), enumerate(names)):
        y = -row - (len(names) + 0.7) * line
        ax.text(-0.7, y, name, ha="right", va="center", size="small")
    bottom = -2 * len(names) - 0.7
    _key(ax, bottom, {"wanted here": BLUE, "not wanted here": ORANGE, "left out": ""})
    ax.set(xlim=(-2.6, half - 0.4), ylim=(bottom - 0.4, 0.6))
    ax.set_axis_off()
    plots.show(
        figure,
        f"Wanted: {' '.join(WANTED)}. Each network's sounds are under those that are wanted, with "
        "the fewest edits: blue where they agree, orange where they do not, hatched where one is "
        f"left out. {'. '.join(told)}.",
    )


def _columns(heard: Iterable[Sequence[str]]) -> list[list[str]]:
    """Put each wanted sound and what each network says there in a column, "" for nothing.

    What a network adds before a wanted sound has columns of its own.
    """
    aligned = [_aligned(WANTED, sounds) for sounds in heard]
    columns = []
    for i, wanted in enumerate([*WANTED, ""]):
        added = [here[i][:-1] for here in aligned]
        for k in range(max(map(len, added), default=0)):
            columns.append(["", *(more[k] if k < len(more) else "" for more in added)])
        columns.append([wanted, *(here[i][-1] for here in aligned)])
    return columns[:-1]


def _aligned(wanted: Sequence[str], said: Sequence[str]) -> list[list[str]]:
    """Return what is said at each wanted sound, after what is added before it; fewest edits.

    The last one is the end, where nothing is wanted. Of several ways, the most sounds are right.
    """
    # cost[i][j]: edits, and wrong sounds, for the first i wanted and the first j said
    cost = [[(i + j, i + j) for j in range(len(said) + 1)] for i in range(len(wanted) + 1)]
    ways: dict[tuple[int, int], tuple[int, int]] = {}
    for i, j in product(range(len(wanted) + 1), range(len(said) + 1)):
        options = []
        if i and j:
            edits, wrong = cost[i - 1][j - 1]
            differs = wanted[i - 1] != said[j - 1]
            options.append(((edits + differs, wrong + 2 * differs), (i - 1, j - 1)))
        if i:
            edits, wrong = cost[i - 1][j]
            options.append(((edits + 1, wrong + 1), (i - 1, j)))
        if j:
            edits, wrong = cost[i][j - 1]
            options.append(((edits + 1, wrong + 1), (i, j - 1)))
        if options:
            cost[i][j], ways[i, j] = min(options)
    place, found = (len(wanted), len(said)), [[""] for _ in [*wanted, ""]]
    while place in ways:
        (to_i, to_j), before = place, ways[place]
        if before[0] == to_i:
            found[to_i].insert(0, said[to_j - 1])
        elif before[1] < to_j:
            found[to_i - 1][-1] = said[to_j - 1]
        place = before
    return found


def _key(ax: Axes, y: float, colours: Mapping[str, str]) -> None:
    """Write below the tiles what their colours say."""
    x = -0.46
    for name, colour in colours.items():
        _tile(ax, (x + 0.46, y), "", colour)
        ax.text(x + 1.1, y, name, va="center", size="small")
        x += 2 + 0.27 * len(name)


def _tile(ax: Axes, at: tuple[float, float], sound: str, colour: str) -> None:
    """Draw a sound in its colour; hatched where there is none."""
    look: dict[str, Any] = {"facecolor": plots.CARD, "edgecolor": "0.75", "hatch": "////"}
    if colour:
        look = {"facecolor": colour}
    ax.add_patch(Rectangle((at[0] - 0.46, at[1] - 0.4), 0.92, 0.8, linewidth=0, **look))
    ax.text(*at, sound, ha="center", va="center", color="white", size="small")


def one_step() -> None:
    """Show one step of a recurrent network, with the sizes of its vectors."""
    diagram = Diagram()
    old = diagram.box("$h_{t-1}$", (0, 1.8), "key", size=(1.3, 0.9))
    token = diagram.box("$x_t$", (0, 0), "stream", size=(1.3, 0.9))
    recurrent = diagram.box("$W_h$", (3.2, 1.8), "network", size=(1.2, 0.9))
    entering = diagram.box("$W_x$", (3.2, 0), "network", size=(1.2, 0.9))
    total = diagram.box("sum, + b", (5.9, 1.8), size=(1.7, 0.9))
    squash = diagram.box("tanh", (8.3, 1.8), size=(1.3, 0.9))
    new = diagram.box("$h_t$", (11.2, 1.8), "key", size=(1.3, 0.9))
    diagram.arrow(old, recurrent, "$d_h$", role="key")
    diagram.arrow(token, entering, "$d_{in}$", role="stream")
    diagram.arrow(recurrent, total, "$d_h$")
    diagram.arrow(entering, total, "$d_h$", leave="E")
    diagram.arrow(total, squash)
    diagram.arrow(squash, new, "$d_h$", role="key")
    diagram.show(
        "One step of a recurrent network. The old state, d_h numbers, is multiplied by W_h, and "
        "the token, d_in numbers, by W_x. Both results have d_h numbers; they are added with the "
        "bias b, and the tanh of the sum is the new state, d_h numbers."
    )


def two_loops() -> None:
    """Show an encoder that reads *cat* and a decoder that writes its sounds, joined by c."""
    diagram, small, letters = Diagram(), (1.1, 0.8), "cat"
    states = [diagram.box(f"$h_{j}$", (1.6 * j, 1.6), "key", size=small) for j in (1, 2, 3)]
    writes = [diagram.box(f"$s_{i}$", (6.2 + 2 * i, 1.6), "query", size=small) for i in (1, 2, 3)]
    for state, letter in zip(states, letters, strict=True):
        diagram.arrow(diagram.box(letter, (state.at[0], 0), "stream", size=(0.8, 0.7)), state)
    sounds, above = ["start", "K", "AE1", "T"], None
    for state, read, written in zip(writes, sounds[:-1], sounds[1:], strict=True):
        x = state.at[0]
        below = diagram.box(read, (x, 0), "stream", size=(1.2, 0.7))
        diagram.arrow(below, state)
        if above:
            corners = [(x - 1, above.at[1]), (x - 1, 0)]
            diagram.arrow(above, below, via=corners, role="stream")
        above = diagram.box(written, (x, 3.6), size=(1.2, 0.7))
        diagram.arrow(state, above)
    for row in (states, writes):
        diagram.arrow(row[0], row[1], role="key" if row is states else "query")
        diagram.arrow(row[1], row[2], role="key" if row is states else "query")
    c = diagram.box("$c$", (6.4, 1.6), "value", size=(0.8, 0.8))
    diagram.arrow(states[-1], c, role="key")
    diagram.arrow(c, writes[0], role="value")
    diagram.text("encoder", (3.2, -0.8), size=SMALL)
    diagram.text("decoder", (10.2, -0.8), size=SMALL)
    diagram.show(
        "An encoder reads c, a, t into three states h1, h2, h3. The last one becomes the context "
        "c, the only arrow from the encoder to the decoder. The decoder's states s1, s2, s3 write "
        "K, AE1, T. An arrow leads from each written sound back to the input of the next step."
    )


def gates() -> None:
    """Show a gated recurrent unit."""
    diagram = Diagram()
    old = diagram.box("$h_{t-1}$", (0, 4.2), "key", size=(1.3, 0.9))
    token = diagram.box("$x_t$", (0, 0), "stream", size=(1.3, 0.9))
    reset = diagram.box(r"$r_t = \sigma(x_t, h_{t-1})$", (3.7, 1.6), "weights", size=(2.5, 0.9))
    times = diagram.box(r"$\odot$", (3.7, 3.0), size=(0.7, 0.7))
    propose = diagram.box(r"$n_t = \tanh(\cdot)$", (6.6, 1.6), "network", size=(2.3, 0.9))
    update = diagram.box(r"$z_t = \sigma(x_t, h_{t-1})$", (9.8, 1.6), "weights", size=(2.5, 0.9))
    mixed = r"$(1-z_t) \odot n_t + z_t \odot h_{t-1}$"
    mix = diagram.box(mixed, (8.6, 4.2), size=(4.3, 1))
    new = diagram.box("$h_t$", (11.8, 4.2), "key", size=(0.9, 0.9))
    diagram.arrow(old, mix, "kept where z is near 1", role="key")
    diagram.arrow(mix, new, role="key")
    for gate in (reset, propose, update):
        diagram.arrow(token, gate, leave="E", role="stream")
    diagram.arrow((1.3, 4.2), (3.35, 3.0), "$W_{hn}$", via=[(1.3, 3.0)], role="key")
    for x in (3.0, 9.1):  # both gates read the old state, too
        diagram.arrow((1.3, 3.0), (x, 1.15), via=[(1.3, 0.65), (x, 0.65)], role="key")
    diagram.arrow(reset, times, role="weights")
    diagram.arrow((4.05, 3.0), (6.6, 2.05), via=[(6.6, 3.0)], role="key")
    diagram.arrow((7.75, 1.6), (8.1, 3.7), via=[(8.1, 1.6)], role="network")
    diagram.arrow(update, (9.8, 3.7), role="weights")
    diagram.show(
        "A gated recurrent unit. The token goes into the reset gate r, the candidate n and the "
        "update gate z. The old state goes into both gates, and through W_hn and the reset gate "
        "into the candidate. Where r is near 0, the old state's part of the candidate is blocked. "
        "The new state is (1 - z) times n plus z times the old state: where z is near 1, the old "
        "state passes along the top."
    )


def gradients(untrained: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> None:
    """Show the gradient of the last state by the token k back, before and after training.

    Each is relative to k = 0; a name has one colour.
    """
    title = "In an RNN the gradient dies with distance; through trained gates it lives"
    labels = "tokens back", "gradient of the last state,\nrelative to the last token's"
    figure, ax = plots.axes(title, *labels, size=(7, 3.9))
    said = []
    for norms, style, when in ((untrained, "--", "untrained"), (trained, "-", "trained")):
        for (name, norm), colour in zip(norms.items(), plots.COLOURS, strict=False):
            relative = (norm / norm[0]).tolist()
            ax.semilogy(relative, style, color=colour)
            text = f"{name}, {when}"
            last = len(relative) - 1
            ax.text(last + 0.4, relative[-1], text, color=colour, va="center", size="small")
            said.append(f"{text}, {last} back: {relative[-1]:.0e}")
    farthest = len(next(iter(untrained.values()))) - 1
    note = "dashed: untrained, random vectors\nsolid: trained, the long word's letters"
    ax.text(0.03, 0.06, note, size="small", color="0.3", transform=ax.transAxes)
    ax.set(xlim=(0, 1.32 * farthest), xticks=range(0, farthest + 1, 5))
    plots.show(
        figure,
        "Gradient of the last state by the token k steps back, relative to k = 0, on a logarithmic "
        "axis. Untrained networks read random vectors, trained ones the long word. "
        f"{'; '.join(said)}.",
    )


def by_length(lengths: Sequence[int], shares: Mapping[str, Sequence[float]], title: str) -> None:
    """Show the share of words with all sounds right, for words of each number of letters."""
    labels = "letters in the word", "share of words all right"
    figure, ax = plots.axes(title, *labels, size=(6.6, 3.4))
    for (name, share), colour in zip(shares.items(), plots.COLOURS, strict=False):
        ax.plot(lengths, share, "o-", color=colour, markersize=4)
        at = {"xy": (lengths[0], share[0]), "xytext": (-4, 13), "textcoords": "offset points"}
        ax.annotate(name, **at, color=colour)
    ax.set(ylim=(-0.03, 1), xticks=lengths)
    said = "; ".join(f"{name}: {' '.join(f'{x:.2f}' for x in of)}" for name, of in shares.items())
    plots.show(
        figure,
        f"Share of words with all sounds right, at {lengths[0]} to {lengths[-1]} letters. {said}.",
    )


def squeezed(figures: Mapping[str, Any]) -> None:
    """Show what is read through a context of 256, 64 or 16 numbers.

    `figures` are those of research/results/bottleneck.json.
    """
    title = "64 numbers let through about as much as 256, and 16 less"
    names = {"1500": "after 1,500 steps (three seeds)", "6000": "after 6,000 steps (one seed)"}
    figure, panels = plots.panels(title, [*names.values()], size=(9, 3.4))
    said = []
    for ax, steps in zip(panels, names, strict=True):
        for width, colour in ((256, ORANGE), (64, AMBER), (16, PINK)):
            runs = figures["runs"][f"256 through {width}"][steps]
            share = torch.tensor([run["accuracy"] for run in runs]).mean(0).tolist()
            ax.plot(figures["lengths"], share, "o-", color=colour, markersize=4, label=f"{width}")
            told = " ".join(f"{x:.2f}" for x in share)
            said.append(f"c of {width}, {int(steps):,} steps: {told}")
        ax.set(ylim=(0, 1), xticks=figures["lengths"], xlabel="letters in the word")
    panels[0].set_ylabel("share of words all right")
    panels[1].legend(title="numbers in c", fontsize="small", title_fontsize="small")
    plots.show(
        figure,
        "Share of words with all sounds right, at 3 to 14 letters, three seeds for 1,500 steps and "
        f"one for 6,000. {'; '.join(said)}.",
    )


def errors(figures: Mapping[str, Any]) -> None:
    """Show the phoneme error rate by length, of one vector and of attention: `long_words`."""
    title = "Through one vector, errors per sound climb with length; with attention far less"
    labels = "letters in the word", "sounds wrong, of 100"
    figure, ax = plots.axes(title, *labels, size=(7.4, 3.6))
    said = []
    for name, (arm, colour) in READERS.items():
        runs = figures["readers"][arm]
        for kind, style in (("dictionary", "o-"), ("joined", "s--")):
            at = [row["letters"] for row in runs[0][kind]]
            wrong = 100 * torch.tensor([[row["error"] for row in run[kind]] for run in runs])
            least, mean, most = wrong.amin(0).tolist(), wrong.mean(0).tolist(), wrong.amax(0)
            ax.fill_between(at, least, most.tolist(), color=colour, alpha=0.25, linewidth=0)
            ax.plot(at, mean, style, color=colour, markersize=4)
            told = ", ".join(f"{n} letters {x:.0f}" for n, x in zip(at, mean, strict=True))
            said.append(f"{name}, {kind} words: {told}")
        ax.text(at[-1] + 0.6, mean[-1], name, color=colour, va="center")
    note = "solid: dictionary words\ndashed: joined words\nbands: three seeds"
    ax.text(4, 78, note, size="small", color="0.3", va="top")
    ax.set(ylim=(0, 80), xlim=(3, 41), xticks=range(0, 36, 5))
    plots.show(
        figure,
        "Sounds that are wrong, of 100, against letters, for two networks trained on the same "
        f"words, three seeds. {'. '.join(said)}.",
    )


def where_training_ended(figures: Mapping[str, Any]) -> None:
    """Show how many sounds networks write for words of each length: research's `long_words`."""
    title = "The longer its training words, the later a network stops"
    names = ["g2p-en", "three small networks, by what they were trained on"]
    figure, axes = plots.panels(title, names, size=(9, 4))
    counts = torch.tensor(figures["letters"]) / max(figures["letters"])
    readers = {"g2p-en": [figures["g2p"]], **figures["readers"]}
    ends = []
    shown = {"g2p-en": BLUE, "at most 8 letters": PINK, "all": BLUE, "all and joined": ORANGE}
    for name, colour in shown.items():
        ax, runs = axes[name != "g2p-en"], readers[name]
        for kind, style in (("dictionary", "o-"), ("joined", "s--")):
            at = [row["letters"] for row in runs[0][kind]]
            written = torch.tensor([[row["written"] for row in run[kind]] for run in runs]).mean(0)
            ax.plot(at, written.tolist(), style, color=colour, markersize=4)
        end = written[-1].item()
        ax.text(35.7, end, name, color=colour, va="center", size="small")
        ends.append(f"{name} {end:.0f}")
    for ax, name in zip(axes, ("g2p-en", "all"), strict=True):
        ax.bar(range(len(counts)), (10 * counts).tolist(), color="0.85", width=1)
        for kind in ("dictionary", "joined"):
            rows = readers[name][0][kind]
            at, wanted = [x["letters"] for x in rows], [x["wanted"] for x in rows]
            ax.plot(at, wanted, ".", color="0.3")
        ax.text(26, 25.5, "wanted", color="0.3", size="small", ha="right")
        ax.text(13, 3, "dictionary words\nof each length", color="0.4", size="small")
        ax.text(1, 32, "solid: dictionary, dashed: joined", color="0.3", size="small")
        ax.set(xlim=(0, 50), ylim=(0, 34), xlabel="letters in the word", xticks=range(0, 36, 7))
    for sounds, colour in ((figures["g2p"]["heard"], BLUE), (WANTED, "0.3")):
        axes[0].plot([34], [len(sounds)], "*", color=colour, ms=9)
    axes[0].text(35.7, len(WANTED), "the long word", va="center", size="small")
    axes[0].set_ylabel("sounds, on average")
    plots.show(
        figure,
        "Sounds written against letters, and grey bars for how many dictionary words have each "
        "length: most have 5 to 9 letters. Left g2p-en, right three small networks. Each writes as "
        "many sounds as wanted up to the lengths that it was trained on, and then flattens. For "
        f"joined words of 35 letters, {wanted[-1]:.0f} sounds are wanted; written: "
        f"{', '.join(ends)}. A star marks the long word.",
    )


def needed(kind: Kind, state: State, n: int) -> list[State]:
    """List the states that a state is computed from, in layers over n tokens."""
    i, layer = state
    if kind == "RNN":
        before = [(i - 1, layer)] if i > 0 else []
        return [(i, layer - 1), *before]
    reach = 1 if kind == "window of three" else n
    return [(j, layer - 1) for j in range(n) if abs(i - j) <= reach]


def ready(kind: Kind, n: int = 8, layers: int = 2) -> dict[State, int]:
    """Number each state by the earliest step at which it can be ready; tokens are there at 0."""
    steps: dict[State, int] = {(i, 0): 0 for i in range(n)}
    for layer in range(1, layers + 1):
        for i in range(n):
            steps[i, layer] = 1 + max(steps[x] for x in needed(kind, (i, layer), n))
    return steps


def numbered() -> None:
    """Show two layers over eight tokens, each state numbered by the step at which it is ready."""
    title = "Two layers: an RNN's last state is ready at step 9, the others' at step 2"
    kinds = get_args(Kind)
    names = [*kinds[:2], "attention (arrows into one state of each layer)"]
    figure, axes = plots.panels(title, names, size=(8.4, 6.4), rows=3)
    tokens = dict.fromkeys(((i, 0) for i in range(8)), plots.PALE[3])
    for ax, kind in zip(axes, kinds, strict=True):
        steps = ready(kind)
        shown = [x for x in steps if x[1] and (kind != "attention" or x[0] == 3)]
        arrows = [(start, state) for state in shown for start in needed(kind, state, 8)]
        last = [state for state in steps if steps[state] == max(steps.values())]
        plots.graph(ax, steps, arrows, tokens | dict.fromkeys(last, plots.PALE[1]))
    plots.show(
        figure,
        "Two layers of eight states over eight tokens, each numbered by the step at which it is "
        "ready. In the RNN the first layer has 1 to 8 and the second 2 to 9; in windows and in "
        "attention the first layer has 1 everywhere, the second 2.",
    )
