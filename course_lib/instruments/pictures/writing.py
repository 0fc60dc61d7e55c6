"""The exploration of lesson 09 on fast writing: what each step of a faster translator saves."""

from collections.abc import Mapping

from course_lib.instruments import plots


def ladder(milliseconds: Mapping[str, float], title: str) -> None:
    """Show how long a token takes, a bar for each way of writing it, in the order given."""
    figure, ax = plots.axes(title, "milliseconds a token", "", size=(7.4, 0.55 * len(milliseconds)))
    names, times = [*milliseconds], [*milliseconds.values()]
    bars = ax.barh(names, times, color=plots.COLOURS[0], height=0.6)
    ax.bar_label(bars, [f"{x:.1f}" for x in times], padding=4)
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.set(xlim=(0, 1.12 * max(times)))
    told = "; ".join(f"{name}: {x:.1f}" for name, x in milliseconds.items())
    plots.show(figure, f"Bars, milliseconds a token. {told}.")
