"""Lesson 18's pictures: answers and rewards, the clip, rewards over steps, DPO's gains."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.instruments import answered, plots
from course_lib.instruments.drawings import SMALL, Diagram

BLUE, ORANGE = plots.COLOURS[:2]


def judged() -> None:
    """Show four answers that a model draws, the reward of each, and what follows."""
    diagram = Diagram()
    question = diagram.box("question", (0, 0), "stream", size=(1.9, 0.7))
    policy = diagram.box("model", (3.2, 0), "plain", size=(1.8, 0.9))
    diagram.arrow(question, policy)
    for i, (word, right) in enumerate((("cold", 1), ("warm", 0), ("cold", 1), ("heat is …", 0))):
        y = 1.5 - i
        answer = diagram.box(word, (6.4, y), "stream", size=(1.9, 0.7))
        diagram.arrow((4.1, 0), (5.45, y), via=[(4.8, 0), (4.8, y)])
        reward = diagram.box(f"{right}", (8.9, y), "value" if right else "dim", size=(0.7, 0.7))
        diagram.arrow(answer, reward)
        sign = "likelier" if right else "less likely"
        diagram.text(sign, (9.5, y), size=SMALL, align="left")
    diagram.text("answers, drawn", (6.4, 2.2), size=SMALL)
    diagram.text("a program", (8.9, 2.2), size=SMALL)
    diagram.show(
        "A question goes into the model, which draws four answers: cold, warm, cold, heat is and "
        "so on. A program gives each a reward, 1, 0, 1 and 0. The answers with 1 are made "
        "likelier, those with 0 less likely."
    )


def clip() -> None:
    """Show the gain of a token over its ratio, clipped and not, for a good and a bad answer."""
    ratio = torch.linspace(0.4, 1.6, 100)
    title = "Clipped where the step has gone far enough, and never where it went the wrong way"
    names = {1: "good answer, A = 1", -1: "bad answer, A = −1"}
    figure, panels = plots.panels(title, list(names.values()), size=(8, 2.8))
    for ax, advantage, colour in zip(panels, names, (BLUE, ORANGE), strict=True):
        product, clipped = ratio * advantage, ratio.clamp(0.8, 1.2) * advantage
        ax.plot(ratio, product, "--", color="0.6", linewidth=1)
        ax.plot(ratio, torch.minimum(product, clipped), color=colour)
        ax.axvline(1, color="0.8", linewidth=1, zorder=0)
        ax.set(xlabel="ratio of a token's probability to the old one")
    panels[0].set_ylabel("gain")
    panels[0].text(1.42, 1.5, "not clipped", color="0.4", ha="right", size="small")
    plots.show(
        figure,
        "Gain of a token over the ratio, from 0.4 to 1.6. For a good answer the gain rises with "
        "the ratio up to 1.2 and is flat above. For a bad answer it is flat below 0.8, and falls "
        "from there on. A dashed line is the gain that is not clipped.",
    )


def curve(live: Sequence[float], figures: Mapping[str, Any]) -> None:
    """Show a group's mean reward over the steps: stored seeds, their mean, and a live run.

    `live` has the mean reward of each step, `figures` are those of research/results/reward.json.
    """
    stored = [[step["reward"] for step in run["seen"]] for run in figures["arms"]["GRPO"]]
    average = [mean(seeds) for seeds in zip(*stored, strict=True)]
    first, last = mean(average[:2]), mean(average[-4:])
    title = f"{len(stored)} stored seeds: from {first:.0%} of the answers rewarded to {last:.0%}"
    figure, ax = plots.axes(title, "step", "rewarded, % of 16 answers", size=(7.6, 3.4))
    for run in stored:
        ax.plot(range(1, len(run) + 1), [100 * x for x in run], color=BLUE, alpha=0.3, linewidth=1)
    steps = range(1, len(average) + 1)
    ax.plot(steps, [100 * x for x in average], color=BLUE, linewidth=2.5)
    ax.plot(range(1, len(live) + 1), [100 * x for x in live], "o-", color=ORANGE, linewidth=1.2)
    ax.text(len(average) + 0.3, 100 * average[-1], "mean of\nstored seeds", color=BLUE, va="center")
    # in the margin, where no curve goes
    ax.text(len(average) + 0.3, 30, "your run", color=ORANGE, va="center")
    ax.set(ylim=(0, 105), xlim=(0.5, len(average) + 3.5), xticks=[1, *steps[3::4]])
    said = "; ".join(
        f"{name}: {', '.join(f'{100 * x:.0f}' for x in run)}"
        for name, run in {"mean of the stored seeds": average, "live run": live}.items()
    )
    plots.show(figure, f"Percent of a step's 16 answers that are rewarded, by step. {said}.")


def hacked(paid: Sequence[float], named: Sequence[float]) -> None:
    """Show what is paid for over the steps, and the share of answers that name the right word."""
    title = "What is paid for rises, what was meant is lost"
    figure, ax = plots.axes(title, "step", "mean of 16 answers", size=(7.6, 3.4))
    said = []
    for name, values, colour in (
        ("names the right word", named, BLUE), ("the reward, for shortness", paid, ORANGE),
    ):  # fmt: skip
        ax.plot(range(1, len(values) + 1), values, "o-", color=colour)
        ax.text(len(values) + 0.4, values[-1], name, color=colour, va="center")
        said.append(f"{name}: {', '.join(f'{x:.2f}' for x in values)}")
    ax.set(ylim=(-0.05, 1.05), xlim=(0.5, 1.35 * len(paid)))
    plots.show(figure, f"Means of a step's 16 answers, by step. {'; '.join(said)}.")


def rewarded(figures: Mapping[str, Any], compared: Mapping[str, str], title: str) -> None:
    """Show pass@1 and pass@8 in percent, a panel for some kinds, a row a way, a dot a seed.

    `figures` are those of research/results/reward.json, `compared` maps what a way is called to its
    name there.
    """
    ways, said = answered.ways(figures), []
    figure, panels = plots.panels(title, list(answered.KINDS), size=(9, 3.4))
    for ax, (kinds, some) in zip(panels, answered.KINDS.items(), strict=True):
        for y, (way, name) in enumerate(compared.items()):
            for k, colour, shift in ((1, BLUE, -0.12), (8, ORANGE, 0.12)):
                found = [100 * answered.share(run, some, k) for run in ways[name]]
                label = f"pass@{k}" if ax is panels[0] and not y else None
                ax.plot(found, [y + shift] * len(found), "o", color=colour, alpha=0.7, label=label)
                said.append(f"{kinds}, {way}, pass@{k}: {', '.join(f'{x:.0f}' for x in found)}")
        ax.set_yticks(range(len(compared)), compared if ax is panels[0] else [""] * len(compared))
        ax.set(xlim=(-2, 103), ylim=(len(compared) - 0.5, -0.5), xlabel="rewarded, %")
        ax.grid(axis="y", color="0.9")
    figure.legend(loc="outside lower center", ncol=2)
    plots.show(figure, f"Percent of questions, a point for each seed. {'; '.join(said)}.")


def gains(right: Float[Tensor, " pairs"], others: Float[Tensor, " pairs"]) -> None:
    """Show by how many nats log p of both answers of each pair has changed in a training."""
    better, fell = (right > others).sum().item(), (right < 0).sum().item()
    title = f"DPO pushes pairs away from the diagonal: {better} of {len(right)} are above it"
    figure, ax = plots.axes(
        title, "gain of the other answer, nats", "gain of the right answer, nats", size=(6.4, 4)
    )
    low, high = right.min().item() - 1, right.max().item() + 1
    ax.axline((0, 0), slope=1, color="0.6", linewidth=1)
    ax.set_ylim(min(low, -1), high)
    ax.axhline(0, color="0.8", linewidth=1, zorder=0)
    ax.axvline(0, color="0.8", linewidth=1, zorder=0)
    ax.plot(others, right, "o", color=BLUE, alpha=0.7)
    plots.show(
        figure,
        f"{len(right)} pairs. Right answers gained {right.mean():.1f} nats on average, the others "
        f"{others.mean():.1f}. In {better} pairs the right answer gained more than the other, and "
        f"in {fell} it lost.",
    )
