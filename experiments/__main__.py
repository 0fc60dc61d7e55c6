"""Run the experiments of one lesson, or of all: `python -m experiments [LESSON]`."""

import argparse
import importlib
import pkgutil
import sys
import time

import experiments
from course_lib.instruments import results


def main() -> None:
    """Measure, save and print each experiment of the lesson."""
    modules = [
        importlib.import_module(f"experiments.{module.name}")
        for module in pkgutil.iter_modules(experiments.__path__)
        if module.name != "__main__"
    ]
    found = {module: module.LESSON for module in modules if hasattr(module, "LESSON")}
    lessons = sorted(set(found.values()))
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("lesson", nargs="?", choices=lessons, help="two digits; all by default")
    wanted = parser.parse_args().lesson
    for module in (module for module, lesson in found.items() if wanted in (None, lesson)):
        name = module.__name__.rpartition(".")[2]
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
        print("\n".join(["", *module.table(figures), "", f"kept in {path}"]))


if __name__ == "__main__":
    sys.exit(main())
