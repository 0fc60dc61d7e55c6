"""`course race`: how well a language model predicts after a minute of learning."""

import contextlib
import json
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from course_lib.command_line import shared
from course_lib.files.atomic import write_atomically
from course_lib.files.workspace import MARK, Workspace

if TYPE_CHECKING:
    from course_lib.checking.notebook.race import Runner

NAME = "race"
WHAT = "measure what a notebook's language model learns in 60 seconds"
EXAMPLE = "workspace/10_language_model.ipynb"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the notebook."""
    parser.add_argument("notebook", metavar="NOTEBOOK", type=Path)


def run(options: Namespace) -> int:
    """Run the notebook's `learn`, keep its loss and its code, and print the table."""
    from tqdm import tqdm

    from course_lib.checking.notebook import race

    # find everything that could be missing before the minute begins
    entry = race.entry(options.notebook)
    folder = options.notebook.absolute().parent
    workspace = Workspace.find(folder) or shared.workspace()
    learned, held_out = race.texts()
    print(f"`{race.ENTRY}` gets {race.SECONDS:g} seconds of the processor.")
    learning = threading.Event()

    def bar(stretches: list[str]) -> Iterator[str]:
        learning.set()
        yield from tqdm(stretches, "predicting", leave=False)

    runner = race.Runner(race.GRACE * race.SECONDS)
    with contextlib.chdir(folder), runner, _clock(runner, race.SECONDS, learning):
        outcome = race.run(entry, learned, held_out, runner, bar=bar)
    loss = round(outcome.loss, 4)
    now = datetime.now()
    kept = {
        "when": now.isoformat(timespec="seconds"),
        "notebook": options.notebook.name,
        "loss": loss,
        "seconds": round(outcome.seconds, 1),
        "code": entry.code,
    }
    path = _folder(workspace) / f"{now:%Y-%m-%d_%H-%M-%S-%f}.json"
    write_atomically(path, json.dumps(kept, indent=1) + "\n")
    shared.show(("nats a character", "seconds", "entry"), _rows(workspace, kept))
    print(f"Your loss: {loss:.3f} nats a character. Its code is kept in {path}.")
    return 0


@contextlib.contextmanager
def _clock(runner: "Runner", seconds: float, over: threading.Event) -> Iterator[None]:
    """Show how much of its time the process has used, until the event is set."""
    from tqdm import tqdm

    def watch() -> None:
        layout = "learning: {n:.0f} of {total:.0f} seconds |{bar:30}|"
        with tqdm(total=seconds, bar_format=layout, leave=False) as bar:
            while not over.wait(0.5):
                bar.update(min(seconds, runner.seconds) - bar.n)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _folder(workspace: Workspace) -> Path:
    return workspace.folder / MARK / NAME


def _rows(workspace: Workspace, new: dict) -> list[tuple[str, str, str]]:
    """List the published entries and the reader's own, the best first; an unreadable one is out."""
    from course_lib.instruments import results

    published = results.load(NAME)["figures"].values()
    rows = [(x["loss"], x["seconds"], x["title"]) for x in published]
    for file in _folder(workspace).glob("*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(file.read_text("utf8"))
            this = "yours, now" if kept == new else f"yours, {kept['when'].replace('T', ' ')}"
            rows.append((float(kept["loss"]), float(kept["seconds"]), this))
    return [(f"{loss:.3f}", f"{seconds:.0f}", title) for loss, seconds, title in sorted(rows)]
