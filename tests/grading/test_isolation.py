"""What can be seen from inside, what holds at each level, and that nothing inside decides."""

import ast
import os
import platform
import re
import stat
import sysconfig
import time
from pathlib import Path

import psutil
import pytest

from course_lib.answers.answer import Request
from course_lib.checking.catalogue import ids, load
from course_lib.files.course_map import lesson_of
from course_lib.files.paths import ROOT
from course_lib.grading.judging.inside.confinement import ALLOWED, ARCHITECTURES, NEWEST, ONLY_WITH
from course_lib.grading.judging.isolation import (
    DEVICES,
    LEVELS,
    NoIsolation,
    best_level,
    command,
    problem,
)
from course_lib.grading.judging.rules import MEMORY
from course_lib.grading.judging.sandbox_files import COURSE, INSIDE, earlier_components, make_files

# what knows cases, references, mistakes or points
DECIDE = {
    "catalogue", "exercise", "verdict", "trial", "mutants", "edits", "laws", "notebook",
    "notebook_answers", "forbidden_source", "judge", "grades", "pipeline", "workers", "worker",
    "sandbox", "flags", "likeness", "own_answers", "forbidden_operations",
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
        name for name in INSIDE if name.startswith("grading.judging.inside.")
    }
    own = {
        load(exercise_id).reference.__module__
        for exercise_id in ids()
        if lesson_of(load(exercise_id).lesson) >= lesson_of(lesson)
    }
    earlier = {module for module, _ in earlier_components(lesson).values()}
    for module in own - earlier:
        assert module.partition(".")[2] not in seen


def test_judge_and_sandbox_share_messages_and_nothing_that_decides():
    """What stands inside imports only what stands inside, or the reader's own packages."""
    inside = {name.removesuffix(".__init__") for name in INSIDE} | {"exercises"}
    # an old name of what is not there is an error, like the new one
    for name in (name for name in INSIDE if not name.startswith("old_names.")):
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
    stub = COURSE / "grading" / "judging" / "inside" / "exercises_stub.py"
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
    for module in (
        "pytest",
        "psutil",
        "course_lib.grading.judging.judge",
        "course_lib.attention",
        "course_lib.encoder",
    ):
        reply = sandbox(f"def answer():\n    import {module}")
        assert reply.error
        assert reply.error.type == "ModuleNotFoundError"
    # an earlier lesson's component, by its name of 0.2.0 too
    for module in ("before_attention", "windows"):
        define = "def answer():\n    return receptive_field(1, 3)"
        assert sandbox(f"from course_lib.{module} import receptive_field\n{define}").output == 3


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
        "os.chmod(os.__file__, os.stat(os.__file__).st_mode)",
        "os.fchmod(os.open(os.__file__, 0), os.stat(os.__file__).st_mode)",
        "os.chown(os.__file__, -1, -1)",
        "os.fchown(os.open(os.__file__, 0), -1, -1)",
        "os.utime(os.__file__)",
        "os.utime(os.open(os.__file__, 0))",
        "os.setxattr(os.__file__, 'user.hostile', b'')",
        "os.listxattr(os.__file__)",
        "os.rename(os.__file__, os.__file__)",
        "os.truncate(os.__file__, 10**9)",
        "fcntl.ioctl(os.open(os.__file__, 0), 0x80086601, b' ' * 8)",  # a file's attributes
        "fcntl.fcntl(3, 8, os.getppid())",  # whom a socket signals
        "ctypes.CDLL(None).prctl(1, 0) == 0 or os.open('nowhere', 0)",  # to outlive its parent
        "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
        # to mark memory as broken, which root may: refused by us, and not as unknown
        "ctypes.CDLL(None, use_errno=True).madvise(None, 0, 100)"
        "; ctypes.get_errno() == 1 and os.open('nowhere', 0)",
    ],
)
def test_a_level_refuses(sandbox, call):
    modules = "ctypes, fcntl, os, sys, socket, resource"
    reply = sandbox(f"import {modules}\ndef answer():\n    {call}\n    return 1")
    assert reply.output is None
    assert reply.error.type in (
        "PermissionError", "OSError", "FileNotFoundError", "ProcessLookupError", "ValueError",
    ), reply  # fmt: skip


def test_a_system_call_that_is_not_on_the_list_is_refused(sandbox):
    column = ARCHITECTURES[platform.machine()][0]
    known = [*ALLOWED.values(), *ONLY_WITH.values()]
    # the kernel filters neither `uretprobe` nor `uprobe`: they end a process that is not probed
    listed = {numbers[column] for numbers in known} | {335, 336}
    source = f"""
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def answer():
    let_through = []
    for number in set(range({NEWEST + 100})) - {listed}:
        ctypes.set_errno(0)
        if libc.syscall(number, 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() not in (1, 38):
            let_through.append(number)
    return let_through
"""
    assert sandbox(source).output == []


THREADS = (
    "threading.Thread(target=print).start()",
    "concurrent.futures.ThreadPoolExecutor(1).submit(print)",
    "_thread.start_new_thread(print, ())",
)


@pytest.mark.parametrize("call", THREADS)
def test_no_thread_starts_since_the_watch_sees_its_own_alone(sandbox, call):
    modules = "_thread, concurrent.futures, threading"
    reply = sandbox(f"import {modules}\ndef answer():\n    {call}\n    return 1")
    assert (reply.output, reply.error.type) == (None, "RuntimeError"), reply
    assert "can't start new thread" in reply.error.message


def test_all_that_is_asked_of_an_answer_is_one_account_of_time(sandboxes):
    slow = "import time\ndef answer(x):\n    time.sleep(0.4)\n    return x"
    with sandboxes("02", best_level(), 1, MEMORY) as sandbox:
        sandbox.hold(slow, "answer")
        assert sandbox.run(Request((1,))).output == 1
        started = time.monotonic()
        errors = [sandbox.run(Request((1,))).error for _ in range(30)]
        assert time.monotonic() - started < 1
        assert errors[-1].type == "Timeout"
        sandbox.hold(slow, "answer")  # the next answer has a time of its own
        assert sandbox.run(Request((1,))).output == 1


HONEST = {
    "more threads of torch's": """
import torch
def answer():
    torch.set_num_threads(4)
    x = torch.randn(500, 500, requires_grad=True)
    (x @ x).softmax(-1).sum().backward()
    return x.grad is not None
""",
    "what needs a compiler elsewhere": """
import torch
@torch.compile
def one(x):
    return x + 1
two = torch.compile(one, mode="reduce-overhead")
@torch.compile(fullgraph=True)
def answer():
    return (two(torch.ones(1)) == 2).item()
""",
    "a progress bar": """
from tqdm import tqdm
from tqdm.auto import trange
def answer():
    return sum(tqdm(range(3))) == 3 == len(list(trange(3)))
""",
    "sleep": """
import datetime, time
def answer():
    started = time.monotonic()
    time.sleep(0.05)
    return time.monotonic() - started >= 0.05 and datetime.datetime.now().year > 2000
""",
    "random numbers": """
import os, random, secrets, numpy, torch
def answer():
    torch.seed()
    drawn = [torch.rand(1).item(), numpy.random.default_rng().random(), random.random()]
    return len(os.urandom(8)) == 8 and secrets.randbelow(3) < 3 and max(drawn) < 1
""",
    "linear algebra": """
import numpy, torch
def answer():
    torch.linalg.svd(torch.randn(50, 50)), torch.fft.fft(torch.randn(64)), torch.randperm(99)
    numpy.linalg.svd(numpy.random.rand(60, 60)), numpy.random.rand(300, 300) @ numpy.ones(300)
    torch.nn.LSTM(8, 8, 2)(torch.randn(5, 3, 8))
    torch.nn.functional.conv2d(torch.randn(1, 3, 64, 64), torch.randn(8, 3, 3, 3))
    return True
""",
    "what it runs on": """
import os, platform, resource, sys, warnings
def answer():
    warnings.warn("printed")
    print("printed", file=sys.stderr)
    os.sched_getaffinity(0), os.cpu_count(), os.times(), os.listdir("."), os.stat(os.__file__)
    resource.getrusage(resource.RUSAGE_SELF), resource.getrlimit(resource.RLIMIT_AS)
    return bool(platform.machine())
""",
}


@pytest.mark.parametrize("what", HONEST)
def test_what_honest_answers_need_is_there(sandbox, what):
    reply = sandbox(HONEST[what])
    assert reply.output, reply.error


EVERYTHING = """
import os
def walk(places):
    for place in places:
        yield place
        for folder, folders, files in os.walk(place):
            if folder != "/proc":
                yield from (os.path.join(folder, name) for name in folders + files)
"""


def test_nothing_at_all_can_be_opened_for_writing(sandbox, tmp_path):
    outside = ["/", "/dev", "/dev/shm", "/tmp", "/var/tmp", str(Path.home()), str(tmp_path)]
    source = f"""{EVERYTHING}
def answer():
    opened, seen = [], 0
    for path in walk({outside}):
        for place, flags in ((path, os.O_WRONLY), (path + "/new", os.O_WRONLY | os.O_CREAT)):
            try:
                os.close(os.open(place, flags))
            except OSError:
                continue
            opened.append(place)
        seen += 1
    return opened, seen
"""
    opened, seen = sandbox(source).output
    # two devices keep nothing of what is written to them
    assert set(opened) <= set(DEVICES)
    assert seen >= len(outside)
    assert list(tmp_path.iterdir()) == []


def test_nothing_of_one_submission_is_seen_by_the_next(sandboxes):
    if said := problem("bubblewrap"):
        pytest.skip(said)
    source = f"""{EVERYTHING}
import hashlib
def answer():
    found = []
    for path in walk(["/"]):
        for make in (os.mkdir, os.mkfifo, os.unlink, lambda new: os.symlink("a", new)):
            try:
                make(path + "/new" if make is not os.unlink else path)
            except OSError:
                continue
        status = os.lstat(path if path != "/proc" else "/")  # which is new for each
        found.append((path, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino))
    return len(found), hashlib.sha256(repr(sorted(found)).encode()).hexdigest()
"""
    with sandboxes("02", "bubblewrap", 60, MEMORY) as sandbox:
        found = []
        for _ in range(2):
            sandbox.hold(source, "answer")
            found.append(sandbox.run(Request(())).output)
            sandbox.clear()
    assert found[0][0] > 1000
    assert found[0] == found[1]


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
