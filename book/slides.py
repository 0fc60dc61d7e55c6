"""Slides of a lesson from its own cells: its question, pictures, predictions and formulas.

reveal.js shows them; sphinx-revealjs has it in a wheel. nbconvert's template would load four
scripts from elsewhere.
"""

import importlib.resources
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

import jinja2
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbformat import NotebookNode

from book import pages
from book.rendering import FORMULAS
from course_lib.files.course_map import Page

REVEAL = ("dist/reveal.esm.js", "dist/reveal.css", "plugin/notes/notes.esm.js")
RECAP = "## What to remember"
EXERCISE = "**Exercise: "
SECTIONS = re.compile(r"^(?=## )", re.MULTILINE)
DECK = jinja2.Template((pages.HERE / "templates" / "slides.html").read_text("utf8"))


def _formula(source: str, options: dict) -> str:
    return FORMULAS.convert_with_local_state(source.strip(), displaystyle=options["display_mode"])


MARKDOWN = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, renderer=_formula)


def write(folder: Path, lesson: Page, notebook: NotebookNode) -> None:
    """Write the slides of a lesson, and their pictures, into a folder."""
    assert lesson.file
    pictures = folder / lesson.file.stem
    pictures.mkdir(parents=True)
    slides = [f"<h1>{escape(lesson.title)}</h1><p>{escape(lesson.question)}</p>"]
    for slide, drawing in found(notebook):
        if drawing:
            name = f"{len(slides)}.svg"
            (pictures / name).write_text(drawing, "utf8")
            slide = slide.replace("PICTURE", f"{lesson.file.stem}/{name}")
        slides.append(slide)
    page = DECK.render(lesson=lesson, slides=slides)
    (folder / f"{lesson.file.stem}.html").write_text(page, "utf8")


def found(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """Yield the slides of a lesson, each with its drawing, if it has one."""
    heading, before = "", ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for part in SECTIONS.split(cell.source):
                before = before if part.startswith(EXERCISE) else part
                if titled := re.match(r"## (.+)", part):
                    heading = f"<h2>{MARKDOWN.renderInline(titled[1])}</h2>"
                if part.startswith(RECAP):
                    told, *box = part.removeprefix(RECAP).split("\n| | |\n", 1)
                    if told.strip():
                        yield heading + MARKDOWN.render(told), ""
                    for table in box:
                        yield "<h2>Formulas</h2>" + MARKDOWN.render(f"| | |\n{table}"), ""
        elif cell.source.startswith(pages.GUESS):
            yield f"<h2>Predict</h2>{MARKDOWN.render(_question(before))}", ""
        for drawing, alt in pages.pictures([cell]):
            image = f'<img src="PICTURE" alt="{escape(alt)}">'
            yield f'{heading}{image}<aside class="notes">{escape(alt)}</aside>', drawing


def _question(told: str) -> str:
    """Return the last paragraph of a cell that asks something, which is in bold there."""
    return [x for x in told.split("\n\n") if "**" in x][-1]


def put_reveal(folder: Path) -> None:
    """Copy what shows the slides into a folder."""
    folder.mkdir(parents=True)
    package = importlib.resources.files("sphinx_revealjs")
    for name in REVEAL:
        path = package / "_static" / "revealjs" / name
        (folder / Path(name).name).write_bytes(path.read_bytes())
