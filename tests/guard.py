"""No test touches a file that it has not made.

`leave_home` takes away what points to the user's own: the named workspace, and the folders of
Jupyter, IPython and matplotlib. `Guard` proves it: a run fails if a file of the clone that git does
not ignore, of a workspace, of those folders or of the fetched data is another one after it; it
names the file, and the tests that ran when it was written.
"""

import atexit
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from course_lib.files.workspace import MARK, VARIABLE, Workspace

Stamps = dict[Path, tuple[int, int]]  # when a file was written, in nanoseconds, and its bytes

# what a Lab or a kernel that the user has open meanwhile goes on writing
OTHERS = re.compile(r"[/\\](runtime|workspaces)[/\\]|[/\\]fontlist-|\.(db|sqlite)\b")
CLOCK = 0.02  # seconds by which the clocks of files and of Python may differ


def leave_home(root: Path) -> None:
    """Point this process and all that it starts away from the user's own files."""
    os.environ.pop(VARIABLE, None)
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # what started it has done so
    folder = tempfile.mkdtemp(prefix="course-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for variable in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        os.environ[variable] = str(Path(folder, variable.lower()))
    # its list of fonts takes seconds to make
    os.environ["MPLCONFIGDIR"] = str(root / "build" / "matplotlib")


class Guard:
    """A plugin of pytest that compares the user's files before and after.

    Made before `leave_home`, since it asks the environment where they are.
    """

    def __init__(self, root: Path):
        from jupyter_core import paths as jupyter

        from course_lib.data import store

        home, named = Path.home(), os.environ.get(VARIABLE)
        around = Workspace.find(root)
        self._root = root
        self._workspaces = [root / "workspace", *([around.folder] if around else [])]
        self._workspaces += [Path(named).expanduser()] if named else []
        self._folders = [
            *map(Path, (jupyter.jupyter_config_dir(), jupyter.jupyter_data_dir())),
            Path(os.environ.get("IPYTHONDIR") or home / ".ipython"),
            *(home / x for x in (".matplotlib", ".config/matplotlib", ".cache/matplotlib")),
        ]
        self._data = store.cache_folder()
        self._ran: list[tuple[float, float, str]] = []
        self._problems: list[str] = []

    def stamps(self) -> Stamps:
        """Look at every file."""
        found = {}
        for path in self._files():
            try:
                status = path.stat()
            except OSError:  # it is in git's list alone
                continue
            if stat.S_ISREG(status.st_mode):
                found[path] = status.st_mtime_ns, status.st_size
        return found

    def _files(self) -> Iterator[Path]:
        if shutil.which("git") and "UPDATE_PAGES" not in os.environ:
            command = ["git", "ls-files", "-coz", "--exclude-standard"]
            listed = subprocess.run(command, cwd=self._root, capture_output=True, text=True).stdout
            yield from (self._root / name for name in listed.split("\0") if name)
        for folder in self._workspaces:
            yield from folder.glob("*")
            yield from folder.glob("explorations/*")
            yield from folder.glob(f"{MARK}/**/*")
        for folder in self._folders:
            yield from (x for x in folder.glob("**/*") if not OTHERS.search(str(x)))
        yield from self._data.glob("**/*")

    def differences(self, before: Stamps) -> list[str]:
        """Name each file that is another one now, and the tests that ran at that moment."""
        now, said = self.stamps(), []
        for path in sorted({*before, *now}):
            if before.get(path) == now.get(path):
                continue
            if path not in before and path.is_relative_to(self._data):
                continue  # a test has fetched or unpacked it
            kind = "new" if path not in before else "changed" if path in now else "gone"
            there = next(x for x in (path, *path.parents) if x.exists())
            moment = there.stat().st_mtime
            ran = [x for start, end, x in self._ran if start - CLOCK <= moment <= end + CLOCK]
            said.append(f"{kind}: {path} ({' or '.join(dict.fromkeys(ran)) or 'in no test'})")
        return said

    def pytest_sessionstart(self):
        self._before = self.stamps()

    def pytest_runtest_logreport(self, report):
        self._ran.append((report.start, report.stop, report.nodeid))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        self._problems = self.differences(self._before)
        if self._problems and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        if self._problems:
            terminalreporter.section(
                "a test has touched what it has not made, or you have", red=True
            )
            for problem in self._problems:
                terminalreporter.line(problem)
