"""Reports: what instructors, students and their tools read, all made from the same results.

Each module of this folder is one: `files(results)` returns what it writes, texts by their paths.
What several share stands in `shared/`.
"""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Protocol, cast

from course_lib.files.atomic import write_atomically
from course_lib.grading.marks.schema import Results


class Report(Protocol):
    """A module of this folder."""

    def files(self, results: Results) -> dict[str, str]:
        """Return the texts of a report by their paths; the same results give the same bytes."""
        ...


def reports() -> list[Report]:
    """List the modules of this folder."""
    names = sorted(module.name for module in iter_modules(__path__) if not module.ispkg)
    return [cast(Report, import_module(f"{__name__}.{name}")) for name in names]


def write(results: Results, folder: Path) -> None:
    """Write every report into a folder."""
    for report in reports():
        for name, text in report.files(results).items():
            write_atomically(folder / name, text)
