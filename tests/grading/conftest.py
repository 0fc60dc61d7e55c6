import os
from functools import partial

import pytest

# students' code runs in forked processes, which Windows does not have
collect_ignore_glob = [] if os.name == "posix" else ["test_[!r]*.py"]

KEPT = 4


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

    A judge clears its sandboxes after each notebook: the next answer finds a fresh process. Each
    takes a quarter of a gigabyte, so the few that were used last are kept.
    """
    from course_lib.grading.judging import judge

    monkeypatch.setattr(judge, "Sandbox", partial(_shared, _pool))
    return judge.Sandbox


def _shared(pool, *arguments):
    from course_lib.grading.judging.sandbox import Sandbox

    class Shared(Sandbox):
        def __exit__(self, *exception):
            self.clear()

        def close(self):
            super().__exit__()

    pool[arguments] = pool.pop(arguments, None) or Shared(*arguments)  # now the last one
    while len(pool) > KEPT:
        pool.pop(next(iter(pool))).close()
    return pool[arguments]
