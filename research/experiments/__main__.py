"""Run the experiments of lessons: `python -m research.experiments [LESSON ...] [--jobs 2]`."""

import argparse
import importlib
import multiprocessing
import pkgutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from types import ModuleType

import torch

from course_lib.instruments import results
from research import experiments


def found() -> dict[str, str]:
    """Map each experiment's name to the lesson that it is of."""
    names = [x.name for x in pkgutil.iter_modules(experiments.__path__) if x.name != "__main__"]
    modules = {name: _module(name) for name in names}
    return {name: x.LESSON for name, x in modules.items() if hasattr(x, "LESSON")}


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{experiments.__name__}.{name}")


def run(name: str) -> None:
    """Measure, save and print one experiment."""
    module = _module(name)
    print(f"== {name} (lesson {module.LESSON}), seeds {', '.join(map(str, module.SEEDS))}")
    start = time.perf_counter()
    figures = module.measure()
    path = results.save(
        name,
        figures,
        command=f"make results LESSON={module.LESSON}",
        seeds=module.SEEDS,
        seconds=time.perf_counter() - start,
    )
    print("\n".join(["", *module.table(figures), "", f"{name} is kept in {path}"]))


def main() -> None:
    """Run the experiments one after another, or several at a time, each on one thread."""
    lessons = found()
    parser = argparse.ArgumentParser(prog="python -m research.experiments", description=__doc__)
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 05; all by default")
    parser.add_argument(
        "--jobs", type=int, default=1, help="so many at a time; not where a clock is compared (1)"
    )
    options = parser.parse_args()
    if unknown := {*options.lessons} - {*lessons.values()}:
        parser.error(f"no experiments of lesson {', '.join(sorted(unknown))}")
    wanted = [name for name, of in lessons.items() if of in (options.lessons or [of])]
    if options.jobs == 1:
        for name in wanted:
            run(name)
        return
    # by this name a new process finds the function
    from research.experiments.__main__ import run as importable

    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, fresh, torch.set_num_threads, (1,)) as pool:
        list(pool.map(importable, wanted))


if __name__ == "__main__":
    sys.exit(main())
