"""The exploration of lesson 09 on fast writing: what each step of a faster translator saves."""

from collections.abc import Mapping

from course_lib.instruments import plots


def ladder(milliseconds: Mapping[str, Mapping[str, float]], title: str) -> None:
    """Show how long a token takes: a panel a processor, a bar for each way of writing it."""
    rows = max(map(len, milliseconds.values()))
    longest = max(max(times.values()) for times in milliseconds.values())
    figure, panels = plots.panels(title, [*milliseconds], size=(8.4, 0.55 * rows + 0.4))
    for ax, times in zip(panels, milliseconds.values(), strict=True):
        bars = ax.barh([*times], [*times.values()], color=plots.COLOURS[0], height=0.6)
        ax.bar_label(bars, [f"{x:.1f}" for x in times.values()], padding=4)
        ax.invert_yaxis()
        ax.grid(visible=False, axis="y")
        ax.set(xlim=(0, 1.15 * longest), xlabel="milliseconds a token")
        ax.tick_params(axis="y", labelleft=ax is panels[0])
    told = (
        f"{processor}: {', '.join(f'{name} {x:.1f}' for name, x in times.items())}."
        for processor, times in milliseconds.items()
    )
    plots.show(figure, f"Bars, milliseconds a token. {' '.join(told)}")
