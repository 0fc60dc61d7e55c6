import os
from functools import partial

import pytest

# students' code runs in forked processes, which Windows does not have
collect_ignore_glob = [] if os.name == "posix" else ["test_[!r]*.py"]


@pytest.fixture(scope="session")
def _pool():
    """Sandboxes by what they were asked for; they end with the tests of this process."""
    pool = {}
    yield pool
    for sandbox in pool.values():
        sandbox.close()


@pytest.fixture
def sandboxes(_pool, monkeypatch):
    """Have judges share their sandboxes, so that each loads torch once for many tests.

    A judge clears its sandboxes after each notebook: the next answer finds a fresh process.
    """
    from course_lib.grading import judge

    monkeypatch.setattr(judge, "Sandbox", partial(_shared, _pool))
    return judge.Sandbox


def _shared(pool, *arguments):
    from course_lib.grading.sandbox import Sandbox

    class Shared(Sandbox):
        def __exit__(self, *exception):
            self.clear()

        def close(self):
            super().__exit__()

    if arguments not in pool:
        pool[arguments] = Shared(*arguments)
    return pool[arguments]
