"""What each page costs: seconds, seconds of the processor, and the peak memory of its kernel.

python -m research.benchmarks.pages [01 04_trees ...]

A page is run as it is handed out, in a kernel of its own, with the whole time for its trainings. On
Linux, whose kernel knows a process's peak; pages that are mapped from files count.
"""

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from tqdm import tqdm

from course_lib.files.course_map import number_of
from course_lib.instruments import results
from lessons import build

NAME, COMMAND = "pages_cost", "python -m research.benchmarks.pages"
SPENT = """\
import json, time
[peak] = [x for x in open("/proc/self/status") if x.startswith("VmHWM")]
print(json.dumps([time.process_time(), int(peak.split()[1]) / 1024]))"""


def cost(page: Path) -> dict[str, float]:
    """Run a page, and return its seconds, its kernel's of the processor, and its peak MiB."""
    notebook: NotebookNode = build.build(page)
    notebook.cells.append(new_code_cell(SPENT))
    start = time.perf_counter()
    build.execute(notebook)
    seconds = time.perf_counter() - start
    processor, peak = json.loads(notebook.cells[-1].outputs[0].text)
    return {"seconds": seconds, "processor": processor, "peak": peak}


def table(figures: dict) -> str:
    """Return a table, a row a page: seconds, and MiB."""
    lines = ["| page | seconds | of the processor | peak, MiB |", "|:-|-:|-:|-:|"]
    lines += [
        f"| {number} | {x['seconds']:.0f} | {x['processor']:.0f} | {x['peak']:,.0f} |"
        for number, x in figures.items()
    ]
    return "\n".join(lines)


def main() -> None:
    """Print the table; of all pages, keep it in research/results/pages_cost.json."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("numbers", nargs="*", help="such as 01 or 04_trees (all pages)")
    options = parser.parse_args()
    start, pages = time.perf_counter(), build.lesson_files(options.numbers)
    if options.numbers:
        print(table({number_of(page): cost(page) for page in tqdm(pages)}))
        return
    figures = {  # a run that was stopped goes on
        x: results.once(NAME, [], x, partial(cost, page))
        for page in tqdm(pages)
        for x in [number_of(page)]
    }
    print(table(figures))
    results.save(NAME, figures, command=COMMAND, seeds=[0], seconds=time.perf_counter() - start)


if __name__ == "__main__":
    sys.exit(main())
