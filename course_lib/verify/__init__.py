"""Hold each component against an independent implementation: results and gradients, in float64.

Each module here has the comparisons of the component module of its name.
"""

from importlib import import_module
from pathlib import Path

from course_lib.files.paths import lessons_of_module
from course_lib.verify.comparison import Comparison, Row, measure

__all__ = ["COMPARISONS", "TRIALS", "Comparison", "Row", "measure", "verify"]

TRIALS = 20  # random shapes for each comparison

_COMPARED = {
    file.stem
    for file in Path(__file__).parent.glob("[!_]*.py")
    if (file.parents[1] / file.name).is_file() or (file.parents[1] / file.stem).is_dir()
}
COMPARISONS: list[Comparison] = [
    value
    for name in sorted(_COMPARED, key=lambda name: (lessons_of_module(name), name))
    for value in vars(import_module(f"{__name__}.{name}")).values()
    if isinstance(value, Comparison) and value.possible
]


def verify() -> list[Row]:
    """Compare each component with its oracle."""
    return [measure(comparison, TRIALS) for comparison in COMPARISONS]
