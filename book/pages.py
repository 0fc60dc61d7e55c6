"""Write what Sphinx reads: lessons with their hints, docstrings, topics, results, references."""

import ast
import re
import shutil
from pathlib import Path

import jinja2
import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from course_lib.checking.panel import code
from course_lib.files import course_map
from course_lib.files.course_map import Lesson
from course_lib.files.paths import ROOT

HERE = Path(__file__).parent
CLAIM = "application/vnd.course.claim+json"
TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(HERE / "pages"), undefined=jinja2.StrictUndefined
)
LESSON = re.compile(r"\((?:lessons? )?(\d\d)\b")
HINT = "<details class='hint'><summary>Hint {} of {}</summary><p>{}</p></details>"


def write(folder: Path) -> None:
    """Write all pages into a folder, which holds nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "lessons").mkdir(parents=True)
    (folder / "api").mkdir()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        nbformat.write(for_readers(notebook), folder / "lessons" / path.name)
    shown = {"lessons": course_map.lessons(), "topics": course_map.topics()}
    (folder / "index.md").write_text(_page("index.md", **shown), "utf8")
    for lesson, modules in components().items():
        page = _page("api.md", lesson=lesson, modules=modules)
        (folder / "api" / f"{lesson.number}.md").write_text(page, "utf8")


def components() -> dict[Lesson, list[str]]:
    """Name the modules of each lesson that has some, as their docstrings say."""
    of_lesson: dict[str, list[str]] = {}
    files = [*(ROOT / "course_lib").glob("[!_]*.py"), *(ROOT / "course_lib/efficient").glob("*.py")]
    for file in sorted(files):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        docstring = ast.get_docstring(ast.parse(file.read_text("utf8"))) or ""
        number = LESSON.search(docstring)
        of_lesson.setdefault(number[1] if number else "00", []).append(name)
    return {x: of_lesson[x.number] for x in course_map.lessons() if x.number in of_lesson}


def _page(name: str, **shown: object) -> str:
    return TEMPLATES.get_template(name).render(shown)


def for_readers(notebook: NotebookNode) -> NotebookNode:
    """Return a notebook for readers: hints folded below each stub, and nothing checked."""
    hints = {x.id: x.hints for x in course_map.exercises()}
    cells: list[NotebookNode] = []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            if alt := output.get("metadata", {}).get("image/svg+xml", {}).get("alt"):
                cell.metadata["mystnb"] = {"image": {"alt": alt}}
        if cell.source.startswith("check("):
            cell.outputs = []
        cell.outputs = [x for x in cell.outputs if CLAIM not in x.get("data", {})]
        if exercise_id := cell.metadata.get("exercise"):
            cells[-2].source = f"({exercise_id})=\n{cells[-2].source}"
            told = hints[exercise_id]
            folded = [HINT.format(n, len(told), code(x)) for n, x in enumerate(told, start=1)]
            cells.append(new_markdown_cell("\n".join(folded)))
    notebook.cells = cells
    return notebook
