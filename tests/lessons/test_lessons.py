"""The laws of the lessons and of the notebooks built from them."""

import ast
import re
import statistics
import subprocess
import sys
from itertools import pairwise

import jupytext
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from course_lib import exercises
from course_lib.checking import catalogue
from course_lib.files.course_map import (
    course_map,
    hours,
    is_exploration,
    lesson_of,
    lessons,
    number_of,
    page_files,
    pages,
)
from course_lib.files.paths import ROOT
from course_lib.files.releases import INSTALLATION
from course_lib.grading.marks.by_hand import read_rubric
from course_lib.grading.marks.schema import BY_HAND
from course_lib.grading.marks.written_answers import in_words
from course_lib.instruments import results
from lessons import build as lessons_build
from lessons.build import (
    UNTOUCHED_ONLY,
    build,
    lesson_files,
    missed,
    notebook_path,
    standing_alone,
)
from lessons.kept import CHECK, alike, keep_outputs
from lessons.minutes import minutes
from lessons.solved import show_solved, solved_output
from lessons.topics import topics
from research.experiments import claims
from tests import TENTH
from tests.given_away import FOLDED, given_away, unescaped

FILES = lesson_files()
RUBRICS = ROOT / "lessons" / "rubrics"


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def lesson(request):
    return request.param


def sources(notebook):
    return [(cell.id, cell.cell_type, cell.source, cell.metadata) for cell in notebook.cells]


def test_a_committed_notebook_is_its_lesson_built_and_executed(lesson):
    committed = nbformat.read(notebook_path(lesson), as_version=4)
    assert sources(committed) == sources(standing_alone(build(lesson))), (
        f"stale: make notebooks LESSON={number_of(lesson)}"
    )
    for cell in committed.cells:
        if cell.cell_type == "code" and cell.id != INSTALLATION:
            assert cell.execution_count
            assert not any(output.output_type == "error" for output in cell.outputs)
            printed = [x for x in cell.outputs if x.output_type == "stream"]
            assert not [x.text for x in printed if x.name == "stderr"], "warnings are defects"
    assert missed(committed) == [], "made beside other work: build it again on a quiet machine"


def test_the_first_page_shows_the_map_of_today(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # in no workspace
    first = nbformat.read(notebook_path(FILES[0]), as_version=4)
    shown = [cell.outputs for cell in first.cells if "Markdown(course_map())" in cell.source]
    assert [outputs[0].data["text/markdown"] for outputs in shown] == [course_map()]


# what matplotlib does with torch's tensors; in a kernel nobody sees it
@pytest.mark.filterwarnings("ignore:__array_:DeprecationWarning")
@pytest.mark.parametrize(
    "lesson",
    # nbval runs those that need none
    [x for x in FILES if "needs(" in x.read_text("utf8")][TENTH],
    ids=lambda file: file.stem,
)
def test_a_lesson_runs_to_its_end_without_its_data(lesson, run_cells, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "empty"))
    # the cells that train run in nbval, and nothing else depends on them
    run_cells([x for x in build(lesson).cells if "training" not in x.metadata.get("tags", [])])


def test_the_first_cell_does_nothing_where_the_course_is(capsys):
    title, line, first, *_ = standing_alone(build(FILES[0])).cells
    assert title.cell_type == line.cell_type == "markdown"
    assert "Shift+Enter" in line.source
    assert first.metadata["jupyter"]["source_hidden"]
    exec(first.source, {})
    assert capsys.readouterr() == ("", "")
    # -I: without the course, which nobody has published yet
    alone = [sys.executable, "-I", "-S", "-c", lessons_build.UNPUBLISHED]
    *_, said = subprocess.run(alone, capture_output=True, text=True).stderr.splitlines()
    assert "has no course_lib, and the course has no address yet" in said


def test_two_builds_are_byte_identical(lesson):
    assert nbformat.writes(build(lesson)) == nbformat.writes(build(lesson))


def test_a_page_that_has_not_changed_keeps_every_byte():
    [lesson] = lesson_files(["02"])
    path = notebook_path(lesson)
    new = build(lesson)
    assert keep_outputs(new, path) == ([], [])
    assert nbformat.writes(standing_alone(new)) == nbformat.writes(nbformat.read(path, 4))


PAGE = {
    "import": "from course_lib import training",
    "seed": "SEED = 0",
    "make": "def make(size):\n    return Model(size + more)",
    "more": "more = 2",
    "model": "model = make(SEED)",
    "train": "training.train(model, SEED)",
    "show": "model",
    "check": 'check("start/hello", hello)',
    "apart": "print(SEED, training)",
}


def page(**changed):
    """Return a notebook that was executed, with some other cells."""
    cells = []
    for number, (name, code) in enumerate(PAGE.items(), 1):
        outputs = [new_output("display_data", data={"text/plain": ""})]
        code = changed.get(name, code)
        cells.append(new_code_cell(code, outputs=outputs, execution_count=number))
        cells[-1].metadata = {"tags": ["training"]} if name == "train" else {}
    return new_notebook(cells=cells, metadata={"language_info": {"name": "python"}})


@pytest.mark.parametrize(
    ("changed", "and_so"),
    [
        ({"more": "more = 3"}, {"more", "model", "train", "show"}),
        ({"train": "training.train(model, SEED, 2)"}, {"train", "show"}),
        ({"show": "print(model)"}, {"train", "show"}),
        ({"apart": "print(SEED)"}, {"apart"}),
        ({"make": "def make(size):\n    pass"}, {"make", "model", "train", "show"}),
    ],
)
def test_outputs_change_only_where_a_cell_does_or_what_it_stands_on(tmp_path, changed, and_so):
    path = tmp_path / "page.ipynb"
    nbformat.write(page(), path)
    new = page(**changed)
    names = dict(zip((cell.id for cell in new.cells), PAGE, strict=True))
    assert {names[cell.id] for cell in keep_outputs(new, path).changed} == and_so


def test_what_came_out_otherwise_is_kept_and_named(tmp_path):
    path = tmp_path / "page.ipynb"
    nbformat.write(page(), path)
    new = page()
    for cell in new.cells:
        cell.outputs[0].data["text/plain"] = "another processor"
    kept = keep_outputs(new, path)
    assert not any(cell.outputs[0].data["text/plain"] for cell in new.cells)
    assert [cell.source for cell in kept.otherwise] == [
        x for x in PAGE.values() if x[:5] != "check"
    ]
    assert kept.changed == []


def test_a_check_shows_what_it_says_of_the_solution_but_for_another_rounding():
    new = page()
    [check] = [cell for cell in new.cells if cell.source == PAGE["check"]]
    show_solved(new)
    assert "passed" in check.outputs[0].data["text/plain"]
    assert alike({"x": "[0.3887 12]"}, {"x": "[0.3886 12]"})
    for other in ("[0.3897 12]", "[0.3887 13]", "[0.3887, 12]"):
        assert not alike({"x": "[0.3887 12]"}, {"x": other})


def test_a_cell_that_loads_results_has_changed_when_they_have(monkeypatch):
    [lesson] = lesson_files(["02"])
    monkeypatch.setattr(lessons_build.results, "load", lambda name: {"figures": name})
    new = build(lesson)
    changed = keep_outputs(new, notebook_path(lesson)).changed
    loads = [cell.id for cell in new.cells if "results" in cell.metadata]
    assert loads
    assert {*loads} <= {cell.id for cell in changed}
    code = [cell for cell in new.cells if cell.cell_type == "code"]
    assert len(changed) < len(code) / 2  # what stands on none of them stays


def test_a_notebook_is_left_alone_where_text_is_not_all_or_a_clock_says_no(monkeypatch, capsys):
    changed = build(FILES[0])
    late = new_output("stream", text="✗ expected: a race. Measured: 2 s.\n")
    changed.cells.append(new_code_cell("1", outputs=[late]))
    written = []
    monkeypatch.setattr(lessons_build, "build", lambda lesson: changed)
    monkeypatch.setattr(lessons_build, "execute", lambda notebook: None)
    monkeypatch.setattr(lessons_build, "write", lambda *_: written.append(1))
    for more, said in ((["--text"], "more than text has changed"), ([], "machine busy")):
        assert lessons_build.main(["00", *more]) == 1
        assert said in capsys.readouterr().err
    assert written == []


def test_every_exercise_is_on_exactly_one_page():
    stands = [
        (cell.metadata["exercise"], number_of(file))
        for file in FILES
        for cell in build(file).cells
        if "exercise" in cell.metadata
    ]
    meant = {(x, catalogue.load(x).lesson) for x in catalogue.ids()}
    assert meant == {*stands}, f"no cell `# exercise: id`, or a wrong one: {meant ^ {*stands}}"
    assert len(stands) == len(meant)


def test_every_exercise_is_checked_and_shows_a_solvers_panel_and_a_wrong_answer(lesson):
    committed = nbformat.read(notebook_path(lesson), as_version=4)
    checks = [cell for cell in committed.cells if cell.source.startswith("check(")]
    tried = [catalogue.load(CHECK.match(cell.source)[1]) for cell in checks]
    tried = [y for x in tried for y in (*x.joins, x.id)]
    assert tried == [x.metadata["exercise"] for x in committed.cells if "exercise" in x.metadata]
    for cell in checks:
        [shown], asked = cell.outputs, CHECK.match(cell.source)[1]
        assert alike(shown.data, solved_output(asked)), "an older panel: python -m lessons --text"
        assert "✓" in shown.data["text/plain"]
        assert "✗" in shown.data["text/html"]


def test_a_published_page_says_nothing_of_answers_that_nobody_has_given(lesson):
    committed = nbformat.read(notebook_path(lesson), as_version=4)
    outputs = [x for cell in committed.cells for x in cell.get("outputs", [])]
    told = "\n".join(x.get("text") or x.get("data", {}).get("text/html", "") for x in outputs)
    for empty in ("You made no guess", "keeps no answers", "not attempted yet"):
        assert empty not in told


def test_a_solved_notebook_has_no_stub_and_nothing_that_takes_long(lesson):
    notebook = build(lesson, solved=True)
    assert not any(UNTOUCHED_ONLY & {*cell.metadata.get("tags", [])} for cell in notebook.cells)
    text = nbformat.writes(notebook)
    assert "raise NotImplementedError" not in text.replace("`raise NotImplementedError`", "")
    assert text.count('.status == \\"passed\\"') == text.count('"exercise":')


def test_a_solved_exercise_brings_the_helpers_that_no_cell_has_named_before():
    files = lesson_files(["13", "14_hashing"])
    cells = [cell for file in files for cell in build(file, solved=True).cells]
    sources = {x.metadata["exercise"]: x.source for x in cells if "exercise" in x.metadata}
    assert sources["efficient/tiled"].startswith("def tiled_attention(")
    for name in ("_sort", "attend", "lsh_attention"):
        assert f"\ndef {name}(" in sources["efficient/lsh"]


def test_a_lesson_imports_at_once_what_a_learner_is_told_to_call(lesson):
    cells = build(lesson).cells
    said = [cell.source for cell in cells]
    has_exercises = any("exercise" in cell.metadata for cell in cells)
    if has_exercises:
        said += [file.read_text("utf8") for file in (ROOT / "course_lib/checking").rglob("*.py")]
    told = set(re.findall(r"`(\w+)\(", "\n".join(said))) & {*exercises.__all__}
    assert told >= {"hint", "solution"} or not has_exercises
    [set_up] = [x.source for x in cells if "from course_lib.exercises import" in x.source]
    imported = [x for x in ast.parse(set_up).body if isinstance(x, ast.ImportFrom)]
    there = {alias.name for x in imported for alias in x.names if x.module == exercises.__name__}
    assert told <= there


def test_what_a_sentence_about_an_exercise_names_is_imported_before_it(lesson):
    imported = set()
    for cell in build(lesson).cells:
        if exercise_id := cell.metadata.get("exercise"):
            exercise = catalogue.load(exercise_id)
            said = "\n".join([*exercise.hints, *(x.sentence for x in exercise.mistakes)])
            code = "\n".join(re.findall(r"`([^`]+)`", said))
            roots = r"(?<![\w.])(torch|nn|F|einsum|rearrange|reduce|repeat|math)[.(]"
            assert {*re.findall(roots, code)} <= imported, exercise_id
        elif cell.cell_type == "code":
            nodes = ast.walk(ast.parse(cell.source))
            imports = [x for x in nodes if isinstance(x, ast.Import | ast.ImportFrom)]
            imported |= {alias.asname or alias.name for x in imports for alias in x.names}


def test_each_exercise_is_announced_with_its_minutes_and_difficulty(lesson):
    cells = build(lesson).cells
    texts = {n: x.read_text("utf8") for n, x in page_files().items() if not is_exploration(n)}
    for before, cell in pairwise(cells):
        if exercise_id := cell.metadata.get("exercise"):
            exercise = catalogue.load(exercise_id)
            assert before.source.startswith(f"**Exercise: {exercise.title}** · ")
            assert f" {exercise.minutes} minutes · {'●' * exercise.difficulty}" in before.source
            users = {n for n, text in texts.items() if f'mine("{exercise_id}")' in text}
            said = re.findall(r"\b\d\d\b", before.source.partition(" · used in ")[2])
            assert {*said} == users - {number_of(lesson)}
            [link] = re.findall(r" · \[solution\]\((\S+)\)$", before.source)
            solution = (notebook_path(lesson).parent / link).resolve()
            assert str(solution) == sys.modules[exercise.reference.__module__].__file__


def test_cells_of_imports_answers_and_seeds_are_folded(lesson):
    plumbing = r"(import |from |SEED = |needs\(|\w+ = mine\().*"
    for cell in build(lesson).cells:
        if cell.cell_type == "code" and not {"exercise", "given"} & cell.metadata.keys():
            hidden = cell.metadata.get("jupyter", {}).get("source_hidden", False)
            drawn = "hide-input" in cell.metadata.get("tags", [])
            lines = re.sub(r"\(\n[^()]*\)", "()", cell.source).splitlines()
            only = all(re.fullmatch(plumbing, line) for line in lines if line)
            assert hidden == (drawn or only), cell.source


def test_a_lesson_says_how_long_it_takes(lesson):
    cells = jupytext.read(lesson, fmt="py:percent").cells
    taken = minutes(cells)
    said = int(re.findall(r"(\d+) minutes", cells[0].source)[0])
    assert said == pytest.approx(taken, abs=8), f"python -m lessons.minutes says {taken:.0f}"
    assert said <= (45 if is_exploration(number_of(lesson)) else 75)


def test_a_page_is_one_sitting(lesson):
    number, cells = number_of(lesson), build(lesson).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    own = [cell.metadata["exercise"] for cell in cells if "exercise" in cell.metadata]
    if is_exploration(number):
        assert (
            f" minutes · an exploration of lesson {lesson_of(number)} · needs " in cells[0].source
        )
        assert len(cells) <= 60
        return
    assert len(cells) <= 90  # the folded cell that installs the course is no part of the page
    assert len(re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL).split()) <= 2600
    assert len(own) in ((1,) if number == "00" else (3, 4, 5))
    assert sum(cell.source.startswith("guess = None") for cell in cells) <= 6


def test_the_first_screen_has_the_minutes_and_a_lessons_has_a_picture(lesson):
    committed = nbformat.read(notebook_path(lesson), as_version=4).cells
    assert re.search(r"^\*\*\d+ minutes · ", committed[0].source, flags=re.MULTILINE)
    if is_exploration(number_of(lesson)):
        return
    outputs = [output for cell in committed[:7] for output in cell.get("outputs", [])]
    assert any("image/svg+xml" in output.get("data", {}) for output in outputs)


def test_the_first_lesson_says_how_long_all_take():
    assert f"about {hours()} hours in all" in build(FILES[0]).cells[0].source


def test_cells_are_short(lesson):
    taken = {"exercise", "given"}  # components' own source
    cells = [cell for cell in build(lesson).cells if not taken & cell.metadata.keys()]
    drawn = [cell for cell in cells if "hide-input" in cell.metadata.get("tags", [])]
    assert all(len(cell.source.splitlines()) <= 45 for cell in drawn), "a drawing, folded away"
    cells = [cell for cell in cells if cell not in drawn]
    code = [len(cell.source.splitlines()) for cell in cells if cell.cell_type == "code"]
    assert statistics.median(code) <= 5
    assert max(code) <= 15
    assert code[0] <= 8, "the set-up cell"
    lines = [x for cell in cells if cell.cell_type == "code" for x in cell.source.splitlines()]
    assert max(map(len, lines)) <= 100


def test_text_cells_are_no_walls(lesson):
    for cell in build(lesson).cells:
        folded = "|" in cell.source or "<details>" in cell.source
        if cell.cell_type == "markdown" and not folded:
            prose = re.sub(r"\$\$.*?\$\$", "", cell.source, flags=re.DOTALL)
            assert len(prose.split()) <= 100, cell.source[:60]


def test_every_figure_has_alternative_text(lesson):
    committed = nbformat.read(notebook_path(lesson), as_version=4)
    for cell in committed.cells:
        for output in cell.get("outputs", []):
            for kind in {"image/png", "image/svg+xml"} & output.get("data", {}).keys():
                assert len(output.metadata[kind]["alt"].split()) >= 5, cell.source
                assert "text/html" not in output.data, "the same picture twice"


def test_no_notebook_shows_a_solution(lesson):
    text = notebook_path(lesson).read_text("utf8")
    assert not given_away(unescaped(FOLDED.sub("", text)), lesson.read_text("utf8"))


def test_a_notebook_is_quick_to_open(lesson):
    assert notebook_path(lesson).stat().st_size < 750_000


def test_the_map_knows_every_topic_and_lesson():
    assert [topic.id for topic in topics()] == [f"T{n:02}" for n in range(1, 61)]
    assert {topic.lesson for topic in topics()} <= {lesson.number for lesson in lessons()}
    assert [number_of(file) for file in FILES] == [x.number for x in pages() if x.written]
    assert {lesson_of(x.number) for x in pages()} == {x.number for x in lessons()}


@pytest.mark.parametrize("number", claims.lessons_with_claims())
def test_what_a_lesson_claims_of_its_trained_models_has_been_measured_and_held(number):
    kept = results.load("claims")["figures"][number]
    assert kept["cells"] == claims.fingerprint(number), f"measure: make claims LESSON={number}"
    assert kept["runs"], "one at least; `make claims` makes ten on one thread and on two"
    for run in kept["runs"]:
        assert run["error"] is None, run
        assert all(claim["holds"] for claim in run["claims"]), run


def test_no_cell_that_trains_has_an_assertion_without_a_sentence(lesson):
    for cell in build(lesson).cells:
        if "training" in cell.metadata.get("tags", []):
            nodes = ast.walk(ast.parse(cell.source))
            bare = [x for x in nodes if isinstance(x, ast.Assert) and x.msg is None]
            assert not bare, f"`training.expect` says what was expected:\n{cell.source}"


def test_the_trainings_of_a_cell_have_equal_steps(lesson):
    for cell in build(lesson).cells:
        if "training" in cell.metadata.get("tags", []):
            calls = [x for x in ast.walk(ast.parse(cell.source)) if isinstance(x, ast.Call)]
            given = [x.value for call in calls for x in call.keywords if x.arg == "steps"]
            assert len({ast.unparse(value) for value in given}) <= 1, cell.source


def test_a_question_in_words_has_a_rubric_and_a_cell_to_write_in(lesson):
    asked = in_words(build(lesson))
    assert set(asked.values()) <= {""}, "the cell to write in says more than where to write"
    rubric = RUBRICS / f"{number_of(lesson)}.csv"
    assert rubric.is_file() == bool(asked)
    if asked:
        criteria = read_rubric(rubric.read_text("utf8"))
        assert {x.exercise.removeprefix(BY_HAND) for x in criteria} == asked.keys()
        assert sum(x.points for x in criteria) == 4
