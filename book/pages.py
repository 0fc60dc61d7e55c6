"""Write what Sphinx reads: lessons with their exercises, docstrings, the repository's pages.

`pages/*.md` are templates. Hints and solutions are folded below each stub. A few lessons are a
draft: `write(folder, ["02"])` leaves all others out.
"""

import ast
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import jinja2
import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from book import exercises, live, rendering, syllabus
from course_lib.checking.explain import panel
from course_lib.files import course_map, ipynb
from course_lib.files.course_map import Page
from course_lib.files.paths import ROOT
from course_lib.files.releases import HOW_TO_RUN, INSTALLATION, without, without_solution_links
from lessons import published

HERE = Path(__file__).parent
XRAYS = HERE / "xray"
TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(HERE / "pages"), undefined=jinja2.StrictUndefined
)
NOTEBOOKS = ROOT / "notebooks"
CHECK = re.compile(r'check\("(.+?)"')
EXAMPLES = "02_attention.ipynb"  # the lesson of the first page's wrong answer
GUESS = "guess = None"
# what a learner's own notebook needs, and a reader does not
SCAFFOLD = re.compile(r'(?:(?:\w+ = mine\("[^"]*"\)|needs\([^)]*\))\s*)+')
READING = "This copy is for reading. To write answers, [install the course](/install.md)."
ASKED = """<form class="guess" data-key="{}" hidden>
<label>Your guess: <input maxlength="200"></label>
<button>Compare</button> <button type="button">Show it without a guess</button></form>"""
MAP = "drawings.transformer("  # most lessons begin with the same outline, their part in colour
LIGHT = 22_000  # bytes of a picture on the first page
NARROW = 540  # points of a picture that a phone shows whole; a wider one scrolls
NEEDED = re.compile(r"^(You need Python .*)$", re.MULTILINE)  # what README says of installing
MASKED = re.compile(r"^- (\*\*A row whose keys are all masked\*\*.*)$", re.MULTILINE)
CLAIM = "application/vnd.course.claim+json"
PICTURE = "image/svg+xml"
TREE = """```{{toctree}}
:hidden:

{}
```"""
LESSON = re.compile(r"\((?:lessons? )?(\d\d)\b")
LINK = re.compile(r"\[([^][]+)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]+)?\)")
# by the names that they have in the book
REPOSITORY = {
    file.name: file
    for file in (
        *sorted((ROOT / "docs").glob("*.md")),
        ROOT / "CHANGELOG.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / ".github" / "SECURITY.md",
    )
}
RESULTS = ROOT / "research" / "results"
# folders of the repository whose pages are side by side in the book
FOLDERS = re.compile(r"^(?:\.\./)*(?:(?:docs|\.github|research)/)?")
PAGE = "|".join(map(re.escape, REPOSITORY))
NAMED = re.compile(rf"(?<![\w/\[`])(?<!\]\()(?:docs/)?({PAGE})(?![\w\]])")
# what is in the line that folds a text is HTML, where Markdown makes no link
FOLDED = re.compile(r"(<summary>[^<]*?) \((D\d\d in \S+)\)</summary>\n")
OUTWARD = re.compile(r"\]\(((?:\.\./)+)(?:docs|research)/")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
UNKNOWN = re.compile(r"^```csv$", re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def write(folder: Path, only: Collection[str] = ()) -> None:
    """Write all pages into a folder, which then holds nothing else; of lessons, `only` some."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("lessons", "components"):
        (folder / name).mkdir(parents=True)
    shutil.copytree(RESULTS, folder / "results")
    lessons = {path: nbformat.read(path, as_version=4) for path in notebooks()}
    for path, notebook in lessons.items():
        if only and path.stem[:2] not in only:
            continue
        for_readers(notebook)
        live.put_into(notebook, path.stem)
        there = published.links(path.relative_to(NOTEBOOKS).as_posix()).items()
        places = " · ".join(f"[{place}]({address})" for place, address in there)
        reading = f"{READING} Or open this page in {places}." if places else READING
        notebook.cells.insert(1, new_markdown_cell(reading))
        if beside := explorations(path):
            notebook.cells.append(new_markdown_cell(TREE.format("\n".join(beside))))
        written = folder / "lessons" / path.relative_to(NOTEBOOKS)
        written.parent.mkdir(exist_ok=True)
        nbformat.write(notebook, written)
    (folder / "pictures").mkdir()
    alts = {}
    for path in [x for x in lessons if x.parent == NOTEBOOKS]:
        drawing, alts[path.stem] = _light(lessons[path].cells)
        (folder / "pictures" / f"{path.stem}.svg").write_text(drawing, "utf8")
    for lesson, modules in components().items():
        if only and lesson.number not in only:
            continue
        path = folder / "components" / f"{lesson.number}.md"
        _page(path, "lesson", lesson=lesson, modules=modules)
    for name, file in REPOSITORY.items():
        (folder / name).write_text(_linked(file.read_text("utf8")), "utf8")
    kept = {x.stem: json.loads(x.read_text("utf8")) for x in sorted(RESULTS.glob("*.json"))}
    _page(folder / "provenance.md", "provenance", kept=kept)
    xrays = {x.name: _title(x) for x in sorted(XRAYS.glob("*.html"))}
    if xrays:
        _page(folder / "xray.md", "xray", xrays=xrays)
    _page(folder / "components.md", "components", lessons=components())
    written = [x for x in course_map.lessons() if x.file]
    [asked] = MASKED.findall("\n".join(x.source for x in lessons[NOTEBOOKS / EXAMPLES].cells))
    first = {"answer": f"```python\n{exercises.EXAMPLE}```", "asked": asked}
    first["panel"] = panel.html(exercises.verdict_on_the_example(), in_notebook=False)
    first["hours"] = course_map.hours()
    links = published.links(written[0].notebook.as_posix())
    first |= {"alts": alts, "live": live.place, "published": links, "repository": published.HOST}
    first["authors"] = published.PROJECT["authors"][0]["name"]
    _page(folder / "index.md", "index", lessons=written, xrays=xrays, **first)
    [needed] = NEEDED.findall((ROOT / "README.md").read_text("utf8"))
    told = {"needed": needed, "megabytes": _archive(folder), "repository": published.HOST}
    _page(folder / "install.md", "install", **told)
    _page(folder / "404.md", "404")
    exercises_of = Counter(x.lesson for x in course_map.exercises())
    plans = {"courses": syllabus.COURSES, "weeks": syllabus.weeks}
    _page(folder / "teach.md", "teach", lessons=written, exercises=exercises_of, **plans)


def notebooks() -> list[Path]:
    """List the notebooks, as they are committed: executed, and without an answer."""
    return ipynb.listed(NOTEBOOKS)


def explorations(lesson: Path) -> list[str]:
    """Name the pages of a lesson's explorations, as its own page links them."""
    found = NOTEBOOKS.glob(f"explorations/{lesson.stem[:2]}_*.ipynb")
    return sorted(f"explorations/{x.stem}" for x in found) if lesson.parent == NOTEBOOKS else []


def for_readers(notebook: NotebookNode) -> NotebookNode:
    """Return a notebook for readers: with what is folded below each stub, and with its panels."""
    cells: list[NotebookNode] = []
    without_solution_links(notebook)
    without(notebook, INSTALLATION, HOW_TO_RUN)
    for cell in notebook.cells:
        if SCAFFOLD.fullmatch(cell.source):
            continue
        cells.append(cell)
        if cell.cell_type != "code":
            source = FOLDED.sub(r"\1</summary>\n\n\2.\n", cell.source)
            cell.source = OUTWARD.sub(r"](\1", NAMED.sub(r"[](/\1)", source))
            continue
        if cell.metadata.get("jupyter", {}).get("source_hidden"):
            tags = dict.fromkeys([*cell.metadata.get("tags", []), "hide-input"])
            cell.metadata["tags"] = list(tags)
        # a claim is for those who measure
        cell.outputs = [x for x in cell.outputs if CLAIM not in x.get("data", {})]
        for drawing, alt in pictures([cell]):
            wide = {"classes": "wide"} if _width(drawing) > NARROW else {}
            cell.metadata["mystnb"] = {"image": {"alt": alt, **wide}}
        if cell.source.startswith(GUESS):
            cells.append(new_markdown_cell(ASKED.format(cell.id)))
        if exercise_id := cell.metadata.get("exercise"):
            cells[-2].source = f"({exercise_id})=\n{cells[-2].source}"
            cells += exercises.below_the_stub(exercise_id)
        elif checked := CHECK.match(cell.source):
            cell.outputs = [exercises.passed(checked[1])]
            cells += exercises.wrong_answer(checked[1])
    notebook.cells = cells
    return notebook


def pictures(cells: list[NotebookNode]) -> Iterator[tuple[str, str]]:
    """List the pictures that cells show, each with the text for those who do not see it."""
    for cell in cells:
        for output in cell.get("outputs", []):
            if PICTURE in output.get("data", {}):
                yield output.data[PICTURE], output.metadata[PICTURE]["alt"]


def _archive(folder: Path) -> int:
    """Put what is committed into a zip file; return its megabytes, 0 where this is no clone."""
    if not (ROOT / ".git").exists():
        return 0
    file = folder / "transformer-course.zip"
    command = ["git", "archive", "--prefix=transformer-course/", f"--output={file}", "HEAD"]
    subprocess.run(command, cwd=ROOT, check=True)
    return round(file.stat().st_size / 1e6)


def _light(cells: list[NotebookNode]) -> tuple[str, str]:
    """Return the first picture of a lesson that shows its own subject, and is light; its text."""
    own = [x for x in cells if MAP not in x.source]
    return next((drawing, alt) for drawing, alt in pictures(own) if len(drawing) < LIGHT)


def _width(drawing: str) -> float:
    """Return how many points wide a picture is."""
    return float(re.findall(r"<svg[^>]*? width='([\d.]+)pt'", drawing)[0])


def components() -> dict[Page, list[str]]:
    """Name the modules of each lesson that has some, as their docstrings say."""
    of_lesson: dict[str, list[str]] = {}
    files = [*(ROOT / "course_lib").glob("[!_]*.py"), *(ROOT / "course_lib/efficient").glob("*.py")]
    for file in sorted(files):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        number = LESSON.search(ast.get_docstring(ast.parse(file.read_text("utf8"))) or "")
        of_lesson.setdefault(number[1] if number else "00", []).append(name)
    return {x: of_lesson[x.number] for x in course_map.lessons() if x.number in of_lesson}


def _linked(text: str) -> str:
    """Let the links of a page of the repository lead to pages of the book, or nowhere."""
    for exercise in course_map.exercises():
        text = text.replace(f"`{exercise.id}`", f"[`{exercise.id}`](#{exercise.id})")
    # what Sphinx cannot colour is told as it is
    text = UNKNOWN.sub("```text", text)
    return LINK.sub(_link, text)


def _link(found: re.Match) -> str:
    words, path, anchor = found[1], FOLDERS.sub("", found[2]), found[3] or ""
    if path in REPOSITORY:
        shown = "" if words == path else words  # no words: the page's own title
        return f"[{shown}]({path}{_heading(path, anchor)})"
    if path.startswith("notebooks/"):
        return f"[{words}]({path.replace('notebooks', 'lessons', 1)}{anchor})"
    return f"[{words}]({path}{anchor})" if path.startswith("results/") else words


def _heading(page: str, anchor: str) -> str:
    """Name a heading as the book does, where GitHub's name for it is given."""
    for heading in HEADING.findall(FENCE.sub("", REPOSITORY[page].read_text("utf8"))):
        if anchor == "#" + re.sub(r"[^\w\s-]", "", heading.lower()).replace(" ", "-"):
            return f"#{rendering.anchor(heading)}"
    return anchor


def _title(page: Path) -> str:
    found = re.search(r"<title>(.*?)</title>", page.read_text("utf8"))
    return found[1] if found else page.stem


def _page(path: Path, template: str, **shown: object) -> None:
    path.write_text(TEMPLATES.get_template(f"{template}.md").render(shown), "utf8")
