"""The session of a notebook: what its cells say now, what a check shows there, its time limit."""

import _thread
import contextlib
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

from course_lib.answers.answer import (
    Description,
    Error,
    InProcess,
    Reply,
    Request,
    computed_for,
    waited_for,
)
from course_lib.answers.source import define_on
from course_lib.checking.catalogue import outlines
from course_lib.checking.exercise import Exercise
from course_lib.checking.notebook.answer_cells import Attempt, attempts_in
from course_lib.checking.notebook.statements import read_cell
from course_lib.files.course_map import Outline
from course_lib.files.workspace import Workspace

PLOTS = "matplotlib.pyplot"
SECONDS = 20.0  # of the processor's time, for all calls: a loop that keeps gradients fills memory
WAITS = 20.0  # seconds by the clock, one after another, in which a call does not compute
GLANCE = 0.2  # seconds between two looks at how long a call has taken
IDLE = 0.01  # less of a glance in the processor is not computing, on a busy machine either
AT_ONCE = 0.3  # seconds from the end of a cell to the next: nobody is as quick

Judged = TypeVar("Judged")

_cell_ids: dict[int, str | None] = {}  # by the number of the run; not every program says them
_ended, _pause = 0.0, float("inf")
_at_end: list[Callable[[], None]] = []


def follow() -> None:
    """Note from now on which cell each run is of, where this is a notebook."""
    if notebook():

        def begin(info: Any) -> None:
            global _pause
            _pause = time.monotonic() - _ended
            _cell_ids[len(shell().history_manager.input_hist_raw)] = info.cell_id

        def end(_: Any) -> None:
            global _ended
            while _at_end:
                _at_end.pop()()
            _ended = time.monotonic()

        shell().events.register("pre_run_cell", begin)
        shell().events.register("post_run_cell", end)


def shell() -> Any:
    """Return IPython's shell, of a notebook or a terminal, or else None."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def notebook() -> Any:
    """Return IPython's shell, where it runs a notebook, or else None."""
    return shell() if hasattr(shell(), "kernel") else None


def at_end(call: Callable[[], None]) -> None:
    """Call it once, when the cell that runs has ended; at once where this is no notebook."""
    if not notebook():
        call()
    elif call not in _at_end:
        _at_end.append(call)


def in_a_row() -> bool:
    """Tell whether this cell has begun as soon as another had ended, as Run All lets it."""
    return bool(notebook()) and _pause < AT_ONCE


@contextmanager
def unseen() -> Iterator[None]:
    """Show nothing that is displayed inside, and close what is drawn: a check calls many times."""
    if not notebook():
        yield
        return
    from IPython.utils.capture import capture_output

    before = _figures()
    try:
        with capture_output(stdout=False, stderr=False):
            yield
    finally:
        for number in _figures() - before:
            sys.modules[PLOTS].close(number)


def _figures() -> set[int]:
    """Return the numbers of the figures that are open: a notebook shows them behind its cell."""
    plots = sys.modules.get(PLOTS)
    return set(plots.get_fignums()) if plots else set()


def said() -> dict[int, list[str]]:
    """Return what each cell has said, its last text last, by the number of its last run.

    What ran in no known cell is a cell of its own.
    """
    runs = shell().history_manager.input_hist_raw if shell() else []
    found: dict[int | str, tuple[int, list[str]]] = {}
    for number, text in enumerate(runs[1:], start=1):
        cell = _cell_ids.get(number) or number
        _, before = found.pop(cell, (0, []))
        found[cell] = (number, [*before, text])
    return dict(found.values())


def stands_for(name: str, answer: Any) -> bool:
    """Tell whether this is what a notebook's name stands for now."""
    return bool(shell()) and answer is not None and shell().user_ns.get(name) is answer


def attempt(exercise: Exercise) -> Attempt | None:
    """Find the attempt in what the cells say now; None where none is for the exercise.

    It stands on the library's version of what has not passed of its page.
    """
    texts = said()
    page = [x for x in outlines() if x.lesson == exercise.lesson]
    marks = {number: _exercise(of_cell, page) for number, of_cell in texts.items()}
    if exercise.id not in marks.values():  # a lambda's name, or a partial's
        bound = [n for n, of_cell in texts.items() if _binds(of_cell[-1], exercise.name)]
        marks |= dict.fromkeys(bound, exercise.id)
    if exercise.id not in marks.values():
        return None
    cells = [read_cell(number, of_cell[-1], marks[number]) for number, of_cell in texts.items()]
    held = [x for x in page if x.id in marks.values()]
    found = attempts_in(cells, page, held, True, {})[exercise.id]
    if not found.stands_on and not found.along:
        return found
    workspace, others = Workspace.find(), [x for x in page if x.id != exercise.id]
    return found.borrowing([x for x in others if workspace and not workspace.record(x.id).passed])


def _exercise(texts: list[str], page: list[Outline]) -> str | None:
    """Return the id of the exercise that a cell is for, or ever was."""
    for text in reversed(texts):
        for x in page:
            if re.search(rf"^\s*(def|class)\s+{x.name}\b", text, re.MULTILINE):
                return x.id
    return None


def _binds(text: str, name: str) -> bool:
    """Tell whether a cell gives a name a value, and not one of the library's."""
    return any(
        name in x.binds and not x.is_mine and not x.text.startswith("from course_lib")
        for x in read_cell(0, text, None).statements
    )


class Interrupted(Exception):
    """The learner has stopped the check; a notebook shows this sentence, and no traceback."""

    def __str__(self) -> str:
        return "Interrupted: nothing was judged."

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def in_time(judged: Callable[["InTime"], Judged], answer: Any = None) -> Judged:
    """Judge an answer in this process; to compute for too long is an error. Raises Interrupted.

    What the answer displays or draws is not shown.
    """
    try:
        with unseen(), InTime(answer, SECONDS) as handle:
            return judged(handle)
    except KeyboardInterrupt:
        raise Interrupted from None


class InTime(InProcess):
    """An answer in this process whose calls may compute for so many seconds together.

    They are interrupted, in the main thread, by a thread that looks now and then, since Windows
    has no timer that sends signals. What the check itself computes is not counted. Calls that wait
    for a lock, a download or a clock are interrupted too, after `WAITS` seconds.
    """

    def __init__(self, answer: Any, seconds: float):
        super().__init__(answer)
        self._broken: Description | None = None
        self._seconds, self._left = seconds, seconds
        self._since: float | None = None
        self._over: Error | None = None
        self._lock, self._end = threading.Lock(), threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        # a program started in the background ignores interrupts, and would ignore this one
        self._before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self._watcher.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end.set()
        self._watcher.join()
        signal.signal(signal.SIGINT, self._before)

    def hold(self, source: str, name: str, others: Iterable[tuple[str, str]] = ()) -> None:
        """Let `name`, defined by `source` on `others`, be the answer from now on."""
        try:
            with contextlib.redirect_stdout(None):
                self._answer, self._broken = define_on(others, source, name), None
        except Exception as error:
            self._broken = Description("error", problem=f"{type(error).__name__}: {error}")

    def describe(self) -> Description:
        """Tell what the answer is; kind "error" where its source could not be executed."""
        return self._broken or super().describe()

    def run(self, request: Request) -> Reply:
        """Call the answer; after the last of its seconds, the reply is an error."""
        if self._over:
            return Reply(error=self._over)
        start = time.process_time()
        try:
            self._since = start
            try:
                return super().run(request)
            finally:
                with self._lock:
                    self._since = None
                    self._left -= time.process_time() - start
                if self._over:
                    time.sleep(0.01)  # here the interrupt arrives, if it has not yet
        except KeyboardInterrupt:
            if not self._over:
                raise
            with self._lock:
                self._since = None  # the interrupt may have come before this was noted
            return Reply(error=self._over)

    def _watch(self) -> None:
        clock, spent, waited = time.monotonic(), time.process_time(), 0.0
        while not self._end.wait(GLANCE):
            before, computed = clock, spent
            clock, spent = time.monotonic(), time.process_time()
            with self._lock:
                if self._since is None:
                    continue
                idle = spent - computed < IDLE * (clock - before)
                waited = waited + clock - before if idle else 0.0
                if spent - self._since > self._left:
                    self._over = computed_for(self._seconds)
                elif waited > WAITS:
                    self._over = waited_for(WAITS)
                if self._over:
                    _interrupt()


def _interrupt() -> None:
    """Raise KeyboardInterrupt in the main thread."""
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:  # what waits, wakes up from a signal alone
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
