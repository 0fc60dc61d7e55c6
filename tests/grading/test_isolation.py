"""What can be seen from inside, what holds at each level, and that nothing inside decides."""

import ast
import os
import re
import stat
import sysconfig
from pathlib import Path

import psutil
import pytest

from course_lib.answers.answer import Request
from course_lib.checking.catalogue import ids, load
from course_lib.files.paths import ROOT
from course_lib.grading.detect import best_level, problem
from course_lib.grading.isolation import LEVELS, NoIsolation, command
from course_lib.grading.sandbox import MEMORY
from course_lib.grading.sandbox_files import COURSE, INSIDE, earlier_components, make_files

# what knows cases, references, mistakes or points
DECIDE = {
    "catalogue", "exercise", "verdict", "trial", "mutants", "edits", "laws", "notebook",
    "notebook_answers", "forbidden_source", "judge", "grades", "pipeline", "workers", "worker",
    "sandbox", "screen", "likeness", "source_names", "forbidden_operations",
}  # fmt: skip
# in one process, which has its sandboxes only once
CONFINED = [level for level in LEVELS if level != "plain"]
LESSONS = sorted({load(exercise_id).lesson for exercise_id in ids()})


@pytest.fixture
def files_of(tmp_path):
    return lambda lesson: make_files(tmp_path / lesson, lesson)


def modules_of(files):
    """Name the modules of the course in a sandbox, without the package."""
    root = files.folder / "course_lib"
    return {".".join(x.relative_to(root).with_suffix("").parts) for x in root.rglob("*.py")}


@pytest.mark.parametrize("lesson", LESSONS)
def test_no_module_inside_decides_and_none_is_of_this_lesson_or_a_later_one(files_of, lesson):
    seen = modules_of(files_of(lesson))
    assert not {name.rpartition(".")[2] for name in seen} & DECIDE
    assert {name for name in seen if name.startswith("grading")} == {
        name for name in INSIDE if name.startswith("grading.inside.")
    }
    own = {
        load(exercise_id).reference.__module__
        for exercise_id in ids()
        if load(exercise_id).lesson >= lesson
    }
    earlier = {module for module, _ in earlier_components(lesson).values()}
    for module in own - earlier:
        assert module.partition(".")[2] not in seen


def test_judge_and_sandbox_share_messages_and_nothing_that_decides():
    """What stands inside imports only what stands inside, or the reader's own packages."""
    inside = {name.removesuffix(".__init__") for name in INSIDE} | {"exercises"}
    for name in INSIDE:
        tree = ast.parse((COURSE / Path(*name.split("."))).with_suffix(".py").read_text("utf8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("course_lib"):
                module = node.module.partition(".")[2]
                for alias in node.names:
                    assert {module, f"{module}.{alias.name}"} & inside, (name, module)


@pytest.mark.parametrize("file", sorted((COURSE / "answers").glob("*.py")), ids=lambda x: x.stem)
def test_what_runs_beside_an_answer_imports_nothing_else_of_the_course(file):
    found = re.findall(r"^\s*(?:from|import) +(course_lib\S*|\.\S*)", file.read_text("utf8"), re.M)
    assert [x for x in found if not f"{x}.".startswith("course_lib.answers.")] == []


def test_the_exercises_inside_are_stubs(files_of):
    folder = files_of("02").folder / "course_lib" / "exercises"
    stub = COURSE / "grading" / "inside" / "exercises_stub.py"
    assert (folder / "__init__.py").read_text() == stub.read_text()
    assert {path.name for path in folder.iterdir()} == {"__init__.py"}


def test_nothing_readable_holds_the_course_or_the_home(files_of):
    shown = files_of("03").shown()
    for path in shown:
        assert not ROOT.is_relative_to(path), path
        assert not path.is_relative_to(ROOT / "course_lib"), path
        assert not Path.home().is_relative_to(path), path


def test_a_package_that_is_not_to_be_seen_does_not_show_its_libraries(files_of):
    unseen = Path(psutil.__file__).resolve().parent  # loaded here, with a library of its own
    assert str(unseen) in Path("/proc/self/maps").read_text()
    found = files_of("00")
    site = Path(sysconfig.get_path("platlib")).resolve()
    assert unseen not in found.readable
    assert not [x for x in found.libraries if x.is_relative_to(site)]


@pytest.mark.parametrize("level", CONFINED)
def test_a_level_holds_or_says_why_not(level):
    said = problem(level)
    if said is None:
        assert best_level() in LEVELS[: LEVELS.index(level) + 1]
    else:
        assert said == said.strip()
        assert "\n" not in said


@pytest.fixture(params=CONFINED)
def sandbox(sandboxes, request):
    """Ask functions for their results, at each level that this machine has."""
    if said := problem(request.param):
        pytest.skip(f"no {request.param} here: {said}")
    with sandboxes("02", request.param, 60, MEMORY) as sandbox:

        def ask(source):
            sandbox.hold(source, "answer")
            return sandbox.run(Request(()))

        yield ask


def test_a_level_shows_python_and_its_packages_alone(sandbox):
    packages = "import torch, numpy, einops, jaxtyping, matplotlib, math"
    assert sandbox(f"{packages}\ndef answer():\n    return float(torch.ones(2).sum())").output == 2
    for path in (ROOT / "course_lib" / "attention.py", "/etc/passwd", ROOT / "README.md"):
        assert sandbox(f"def answer():\n    return open({str(path)!r}).read()").error
    for module in ("pytest", "psutil", "course_lib.grading.judge", "course_lib.attention"):
        reply = sandbox(f"def answer():\n    import {module}")
        assert reply.error
        assert reply.error.type == "ModuleNotFoundError"
    reply = sandbox("from course_lib.windows import receptive_field\ndef answer():\n    return 1")
    assert reply.output == 1


@pytest.mark.parametrize(
    "call",
    [
        "os.fork()",
        "os.kill(1 if os.getpid() != 1 else 2, 0)",
        "os.execv(sys.executable, ['python'])",
        "socket.socket()",
        "os.memfd_create('a')",
        "os.pidfd_open(os.getpid())",
        "os.setpriority(os.PRIO_PROCESS, 1, 5)" if os.getuid() else "os.sched_setaffinity(0, [0])",
        "open('file', 'w')",
        "open('/dev/shm/file', 'w')",
        "os.mkdir('/tmp/folder')",
        "os.symlink('a', 'b')",
        "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    ],
)
def test_a_level_refuses(sandbox, call):
    reply = sandbox(f"import os, sys, socket, resource\ndef answer():\n    {call}\n    return 1")
    assert reply.output is None
    assert reply.error.type in (
        "PermissionError", "OSError", "FileNotFoundError", "ProcessLookupError", "ValueError",
    ), reply  # fmt: skip


def test_an_answer_sees_three_empty_streams_and_its_socket(sandbox):
    source = """
import os, stat
def answer():
    found = {}
    for number in range(64):
        try:
            found[number] = stat.S_IFMT(os.fstat(number).st_mode)
        except OSError:
            pass
    return found
"""
    kinds = sandbox(source).output
    assert [kinds[str(number)] for number in range(3)] == [stat.S_IFCHR] * 3
    assert set(kinds.values()) == {stat.S_IFCHR, stat.S_IFSOCK}
    assert list(kinds.values()).count(stat.S_IFSOCK) <= 2


def test_the_environment_names_nothing_of_the_grader(sandbox):
    reply = sandbox("import os\ndef answer():\n    return dict(os.environ)")
    assert reply.output["HOME"] == "/"
    assert set(reply.output) & {"PATH", "USER", "PYTHONPATH", "VIRTUAL_ENV"} == set()


def test_bubblewrap_that_is_not_there_is_said(files_of, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoIsolation, match="bubblewrap is not there: install it"):
        command("bubblewrap", files_of("00"), 1, 2**30)
