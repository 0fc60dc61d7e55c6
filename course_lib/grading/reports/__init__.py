"""Reports: what instructors, students and their tools read, all made from the same results."""

from pathlib import Path
from typing import Any

from course_lib.files.atomic import write_atomically
from course_lib.grading.reports import (
    class_page,
    feedback,
    gradescope_json,
    junit,
    nbgrader_csv,
    spreadsheet,
    summary,
)


def write(results: dict[str, Any], folder: Path) -> None:
    """Write every report into a folder; the same results give the same bytes."""
    files = {
        "grades.csv": spreadsheet.render(results),
        "nbgrader.csv": nbgrader_csv.render(results),
        "junit.xml": junit.render(results),
        "summary.md": summary.render(results),
        "class.html": class_page.render(results),
    }
    files |= {f"feedback/{name}": text for name, text in feedback.render(results).items()}
    files |= {f"gradescope/{name}": text for name, text in gradescope_json.render(results).items()}
    for name, text in files.items():
        write_atomically(folder / name, text)
