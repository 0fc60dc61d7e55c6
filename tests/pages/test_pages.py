"""The laws of the pages: what they show is what the course says, and what they name is there.

After a change of panels, lessons, topics, components or exercises, `make pages` measures anew what
`course verify` keeps, and writes what the pages show and the list that `course list` reads.
With UPDATE_PAGES set, these tests write in place of comparing.
"""

import dataclasses
import inspect
import json
import os
import re
import subprocess
import sys
from urllib.parse import quote, unquote

import nbformat
import pytest

from book import live, pictures
from course_lib.checking.catalogue import ids, load, summarise
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.laws import laws
from course_lib.checking.notebook.one_page import one_page
from course_lib.checking.notebook.solution_text import solution_text
from course_lib.files.course_map import (
    EXERCISES,
    SOLUTIONS,
    hours,
    lesson_of,
    lessons,
    page_files,
    pages,
)
from course_lib.files.paths import ROOT
from course_lib.instruments import results
from course_lib.verify import COMPARISONS
from lessons import published
from lessons.topics import disagreements, topics
from research.pages import TABLES, summary

UPDATE = "UPDATE_PAGES" in os.environ
HEADING = re.compile(r"^#+ (.+)$", flags=re.MULTILINE)
PAGES = sorted(
    file.relative_to(ROOT).as_posix()
    for x in (".", "docs", ".github")
    for file in (ROOT / x).glob("*.md")
)


ON_ONE_PAGE = '''"""The Transformer of 2017 on one page: the parts of course_lib, by `make pages`.

It needs torch and einops, and learns to sort letters in a minute. § as in Vaswani et al. 2017.
"""

'''


def read(page):
    return (ROOT / page).read_text("utf8")


def hold(page, before, after, wanted):
    """Compare what is between two texts of a page with what should be there, or write it."""
    text = read(page)
    start = text.index(before) + len(before)
    end = (text + "\n").index(after, start)  # a table may end the page
    if UPDATE:
        (ROOT / page).write_text(text[:start] + wanted + text[end:], "utf8")
    else:
        assert text[start:end] == wanted, f"{page} is not up to date: run `make pages`"


def figures(name):
    return results.load(name)["figures"]


def test_the_catalogue_says_what_the_exercises_say_in_the_order_of_their_cells():
    text = "".join(file.read_text("utf8") for file in page_files().values())
    in_cells = re.findall(r"^# exercise: (\S+)$", text, flags=re.MULTILINE)
    told = [dataclasses.asdict(summarise(load(x))) for x in in_cells]
    wanted = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
    if UPDATE:
        EXERCISES.write_text(wanted, "utf8")
    else:
        assert EXERCISES.read_text("utf8") == wanted, "run `make pages`"
        assert ids() == in_cells


def test_what_solution_prints_without_torch_is_what_it_would_put_together():
    printed = {x: solution_text(load(x)) for x in ids()}
    wanted = json.dumps(printed, indent=1, ensure_ascii=False) + "\n"
    if UPDATE:
        SOLUTIONS.write_text(wanted, "utf8")
    else:
        assert SOLUTIONS.read_text("utf8") == wanted, "run `make pages`"


def test_the_transformer_on_one_page_is_what_the_parts_are():
    page, _ = one_page(lambda _: None)
    for command in ("check --select=I --fix-only", "format"):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command.split(), "--line-length=100", "--quiet", "-"],
            input=page,
            capture_output=True,
            text=True,
            check=True,
        )
        page = done.stdout
    file = ROOT / "docs" / "transformer.py"
    if UPDATE:
        file.write_text(ON_ONE_PAGE + page, "utf8")
    else:
        assert file.read_text("utf8") == ON_ONE_PAGE + page, "run `make pages`"


def test_the_kept_proof_is_of_every_comparison_and_every_exercise():
    kept = figures("verify")
    compared = [(x["component"], x["oracle"]) for x in kept["components"]]
    assert compared == [(x.component, x.oracle) for x in COMPARISONS], "run `make pages`"
    counted = [sum(kind) for kind in zip(*(laws.counts(load(x)) for x in ids()), strict=True)]
    assert list(kept["exercises"].values()) == [len(ids()), *counted, 0], "run `make pages`"


def test_the_results_page_shows_the_kept_proof():
    kept = figures("verify")
    rows = ["| component | oracle | largest error | largest gradient error |", "|:-|:-|-:|-:|"]
    for x in kept["components"]:
        errors = f"{x['error']:.0e} | {x['gradient_error']:.0e}"
        rows.append(f"| `{x['component']}` | {x['oracle']} | {errors} |")
    hold("docs/RESULTS.md", "0e+00 means bit for bit.\n\n", "\n\n", "\n".join(rows))
    rows = [kept["exercises"], ["-:"] * len(kept["exercises"]), kept["exercises"].values()]
    table = "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)
    hold("docs/RESULTS.md", "the verdict is the same for every seed.\n\n", "\n\n", table)


def test_the_instructors_page_says_what_grading_took():
    kept = figures("grading")
    ours, nbgrader, otter = (kept[tool] for tool in ("course", "nbgrader", "otter"))
    hold(
        "docs/GRADING.md",
        "right, wrong, partly right or broken: ",
        " (`python -m research.benchmarks.grading",
        f"{ours['each']:.2f} seconds of one processor, after a start of {ours['start']:.0f} "
        f"seconds. The same notebooks take nbgrader {nbgrader['each']:.1f} seconds each, and otter "
        f"{otter['each']:.1f}",
    )


def test_the_readme_shows_the_panel_that_its_cell_gets_and_where_a_reader_looks():
    for draw in (pictures.panel, pictures.phonograph):
        hold(f"book/static/{draw.__name__}.svg", "", "\n</svg>", draw().removesuffix("\n</svg>\n"))
    assert pictures.told()[0].startswith("✗ attention/softmax: not yet")


@pytest.mark.parametrize("lesson", live.LESSONS)
def test_a_live_part_of_the_site_has_its_section_in_its_lesson(lesson):
    notebook = nbformat.read(ROOT / "notebooks" / f"{lesson}.ipynb", as_version=4)
    live.put_into(notebook, lesson)
    for heading, (name, _) in live.LESSONS[lesson].items():
        [at] = [i for i, x in enumerate(notebook.cells) if live.place(name) in x.source]
        told = "\n".join(x.source for x in notebook.cells[:at] if x.cell_type == "markdown")
        assert re.findall(r"^## .*", told, re.MULTILINE)[-1] == heading


def test_the_readme_is_short_and_its_commands_are_on_the_first_screen():
    lines = read("README.md").splitlines()
    assert len(lines) <= 80
    assert lines.index("make learn") < 15


def test_no_command_has_a_comment_behind_it_which_zsh_would_hand_to_it():
    for page in (*PAGES, "book/pages/install.md"):
        for box in re.findall(r"^```sh\n(.*?)^```", read(page), re.MULTILINE | re.DOTALL):
            assert "#" not in box, page


def test_the_readmes_badges_lead_to_where_the_course_is_published():
    line = published.badges("00_start_here.ipynb")
    before, after = "# The Transformer, step by step\n\n", "Build the Transformer"
    hold("README.md", before, after, line + "\n\n" if line else "")


def test_a_fork_gets_badges_by_one_line(monkeypatch):
    monkeypatch.setattr(published, "NAME", "someone/a-fork")
    assert published.badges("x.ipynb").count("someone/a-fork/") == len(published.PICTURES)


def link(page):
    return f"[{page.title}](notebooks/{page.notebook.as_posix()})"


def test_the_readme_tells_each_lesson_with_its_minutes_and_exercises():
    rows = []
    for x in lessons():
        if x.file:
            exercises = sum(load(exercise_id).lesson == x.number for exercise_id in ids())
            rows.append(f"| {x.number} | {link(x)} | {x.question} | {x.minutes} | {exercises} |")
    hold("README.md", "\n\nThe lessons take about ", " hours in all", str(hours()))
    head = "| | | the question it answers | minutes | exercises |\n|:-|:-|:-|-:|-:|\n"
    hold("README.md", head, "\n\n", "\n".join(rows))


def test_the_results_are_summed_up_in_one_line_each():
    hold("docs/RESULTS.md", "In one line each:\n\n", "\n\n", "\n".join(summary()))


@pytest.mark.parametrize("name", TABLES)
def test_the_results_page_shows_the_kept_results(name):
    rows = re.search(rf"\(\.\./research/results/{name}\.json\)\..*\n\n", read("docs/RESULTS.md"))
    assert rows, f"docs/RESULTS.md does not name {name}.json"
    hold("docs/RESULTS.md", rows[0], "\n\n", TABLES[name](figures(name)))


def test_no_notebook_of_a_class_is_lost_where_a_worker_is_killed():
    assert figures("class_growth")["lost worker"] == {"notebooks": 48, "missing": 0, "equal": True}


def test_no_page_needs_more_memory_than_a_small_machine_has():
    cost = figures("pages_cost")
    assert [*cost] == [*page_files()]
    # measured before kernels got their large tensors from the system
    assert {number for number, x in cost.items() if x["peak"] > 1600} == {"17", "17_four_bits"}
    assert cost["17"]["peak"] < 1800
    assert cost["00"]["peak"] + cost["09"]["peak"] < 1800


def section(number, heading):
    """Return a link to a section of a lesson or an exploration, as JupyterLab names it."""
    own = [x.notebook for x in pages() if lesson_of(x.number) == number and x.written]
    [path] = [x for x in own if lab_anchor(heading) in anchors(ROOT / "notebooks" / x)]
    anchor = quote(lab_anchor(heading), safe=":,?!'&")
    return f"[{number} {plain(heading)}](../notebooks/{path.as_posix()}#{anchor})"


def test_the_topics_page_tells_where_each_topic_is_taught_exercised_and_measured():
    every = topics()
    exercised, measured = (
        sum(bool(x.exercises) for x in every),
        sum(bool(x.measured) for x in every),
    )
    rows = [
        f"{len(every)} of {len(every)} topics are taught, {exercised} are built in an exercise, "
        f"and {measured} are measured.",
        "",
        "| | topic | taught in | exercises | measured in |",
        "|:-|:-|:-|:-|:-|",
    ]
    for x in every:
        built = "<br>".join(f"`{name}`" for name in x.exercises.split()) or "–"
        places = [section(*x.measured.split(" ", 1))] if x.measured else []
        places += [f"[{name}.json](../research/results/{name}.json)" for name in x.results.split()]
        taught, shown = section(x.lesson, x.section), "<br>".join(places) or "–"
        rows.append(f"| {x.id} | {x.topic} | {taught} | {built} | {shown} |")
    hold("docs/TOPICS.md", "## Topics\n\n", "\n\n## ", "\n".join(rows))
    rows = ["| | printed | what holds | shown in |", "|:-|:-|:-|:-|"]
    rows += [
        f"| {x.id} | {x.printed} | {x.holds} | {section(x.lesson, x.section)} |"
        for x in disagreements()
    ]
    hold("docs/TOPICS.md", "pins down what holds.\n\n", "\n\nThe tables", "\n".join(rows))


def plain(heading):
    return re.sub(r"[*`]", "", heading)


def lab_anchor(heading):
    """Return the name by which JupyterLab knows a heading."""
    return plain(heading).replace(" ", "-")


def anchors(file):
    """List the names by which links know the headings of a Markdown page or a notebook."""
    if file.suffix == ".ipynb":
        cells = nbformat.read(file, as_version=4).cells
        text = "\n".join(x.source for x in cells if x.cell_type == "markdown")
        return [lab_anchor(x) for x in HEADING.findall(text)]
    headings = HEADING.findall(file.read_text("utf8"))
    return [re.sub(r"[^\w\- ]", "", x.lower()).replace(" ", "-") for x in headings]


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", read(page)):
        if re.match(r"https?:|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (ROOT / page).parent / path if path else ROOT / page
        assert there.exists(), f"{page} links to {target}"
        if anchor:
            assert unquote(anchor) in anchors(there), f"{page} links to {target}"


# paths that a reader is to make, that a build makes, or that are examples
EXAMPLES = ("my_package", "topic/", "NN_", "noun", "name.", "NAME", "workspace/", ".venv/")
FOLDERS = ("course_lib", "lessons", "notebooks", "research", "tests")


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "docs/ARCHITECTURE.md", "docs/GRADING.md"]
)
def test_paths_that_a_page_names_exist(page):
    for words in re.findall(r"`([^`\n]+)`", read(page)):
        for path in re.findall(r"[\w.{},*-]+(?:/[\w.{},*-]*)+", words):
            if path.startswith(FOLDERS) and not any(example in path for example in EXAMPLES):
                assert list(ROOT.glob(path.rstrip("/"))), f"{page} names {path}"


def glossary():
    table = read("CONTRIBUTING.md").split("## Glossary")[1].split("\n## ")[0]
    rows = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| ")]
    return [term for row in rows for term in re.findall(r"`(.+?)`", row)]


def test_every_symbol_of_the_glossary_is_used_and_told_once():
    files = [*(ROOT / "course_lib").glob("*.py"), *(ROOT / "course_lib").glob("*/*.py")]
    text = "\n".join(file.read_text("utf8") for file in files)
    symbols = glossary()
    assert len(symbols) == len(set(symbols)) > 20
    assert [x for x in symbols if not re.search(rf"\b{x}\b", text)] == []


def test_every_command_that_the_pages_name_is_one():
    from course_lib.command_line.main import main

    for page in (
        "README.md",
        "CONTRIBUTING.md",
        "docs/GRADING.md",
        "docs/DATA.md",
        ".github/SECURITY.md",
    ):
        for command in re.findall(r"`course (\w+)", read(page)):
            with pytest.raises(SystemExit) as ended:
                main([command, "--help"])
            assert not ended.value.code, f"{page} names `course {command}`"
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf8"), flags=re.MULTILINE)
    for page in PAGES:
        named = set(re.findall(r"`make ([a-z]+)", read(page)))
        assert named <= {*targets}, f"{page}: make {named - {*targets}}"


def test_contributing_says_everything_that_an_exercise_may_say():
    page = read("CONTRIBUTING.md").split("### Everything that an exercise file may say")[1]
    page = page.split("\n## ")[0]
    said = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", page))))
    # by the engine and the decorators
    filled = {
        "id",
        "module",
        "properties",
        "mistakes",
        "alternatives",
        "draw",
        "draw_edges",
        "in_steps",
        "broken",
    }
    assert {field.name for field in dataclasses.fields(Exercise)} - filled <= said
    for name in ("cases", "edges", "requires", "mistake", "steps", "hand_out", "alternative"):
        assert f"`@exercise.{name}" in page
        arguments = inspect.signature(getattr(Exercise, name)).parameters.values()
        assert said.issuperset(x.name for x in arguments if x.default != x.empty), name
    public = [name for name in vars(Draw) if not name.startswith("_")]
    assert said.issuperset(public)


def test_an_example_of_what_an_exercise_may_say_says_it():
    rows = re.findall(
        r"^\| (.+?) \| .* \| .*\((course_lib/exercises/\S+)\) \|$",
        read("CONTRIBUTING.md"),
        flags=re.M,
    )
    assert len(rows) > 10
    for said, example in rows:
        names = re.findall(r"\b(?:[a-z_]+(?==)|exercise\.\w+|Probe|build)", said)
        assert names, said
        for name in names:
            assert name in read(example), f"{example} does not say {name}"


def test_no_panel_says_that_more_cases_hold_than_were_tried():
    notebooks = (ROOT / "notebooks").rglob("*.ipynb")
    tried = [x for file in notebooks for x in re.findall(r"Tried: (\d+) of (\d+)", read(file))]
    assert len(tried) > len(ids())
    assert all(int(held) <= int(cases) for held, cases in tried)
