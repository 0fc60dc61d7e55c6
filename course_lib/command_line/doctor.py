"""`course doctor`: whether this machine can run the course, and what to do if not.

A check yields (level, sentence) and may raise anything, which is a finding too. Each imports what
it needs itself, for on a broken machine the rest may not be at hand.
"""

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from course_lib.command_line import shared
from course_lib.files.errors import CommandError
from course_lib.files.paths import ROOT, how_to_install

NAME = "doctor"
WHAT = "look for what would keep the course from running"
EXAMPLE = ""

Finding = tuple[Literal["ok", "warn", "broken"], str]

GIGABYTE = 1e9
TESTED = ROOT / "constraints.txt"
MEMORY, DISK = 4 * GIGABYTE, 1 * GIGABYTE  # total memory and free disk that are enough


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the workspace: the rest is this machine."""
    shared.takes_workspace(parser)


def run(options: Namespace) -> int:
    """Print what each check finds; return 1 if something is broken."""
    broken = False
    for level, sentence in findings(options.workspace):
        print(f"{level:<7}{sentence}", flush=True)
        broken = broken or level == "broken"
    return int(broken)


def findings(workspace: Path | None) -> Iterator[Finding]:
    """Yield what each check finds; `workspace` is the learner's, if it is named."""
    checks = (
        _python, _packages, _torch, _kernel, _machine, _data, _isolation,
        lambda: _workspace(workspace),
    )  # fmt: skip
    for check in checks:
        try:
            yield from check()
        except Exception as error:
            repair = f"Repair the installation: {how_to_install()}."
            yield "broken", f"{type(error).__name__}: {error}. {repair}"


def _python() -> Iterator[Finding]:
    from packaging.specifiers import SpecifierSet

    wanted = importlib.metadata.metadata("transformer-course")["Requires-Python"]
    version = platform.python_version()
    if SpecifierSet(wanted).contains(version, prereleases=True):
        yield "ok", f"Python {version}, {sys.executable}"
    else:
        yield "broken", f"Python {version} runs, and {wanted} is needed: make an environment of it."


def _packages() -> Iterator[Finding]:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name
    from packaging.version import Version

    pins = re.findall(r"^(.+)==(.+)$", TESTED.read_text("utf8"), re.MULTILINE)
    tested = {canonicalize_name(name): Version(pin) for name, pin in pins}
    lines = importlib.metadata.requires("transformer-course") or ()
    wanted = [one for one in map(Requirement, lines) if not one.marker]  # without the extras
    problems: list[str] = []
    newer: list[str] = []
    for requirement in wanted:
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            problems.append(f"{requirement} is not installed: {how_to_install()}.")
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            there = f"{requirement} is needed, and {version} is installed"
            problems.append(f"{there}: {how_to_install()}.")
        elif Version(version).release[:2] > tested[canonicalize_name(requirement.name)].release[:2]:
            newer.append(f"{requirement.name} {version}")
    for problem in problems:
        yield "broken", problem
    if not problems:
        yield "ok", f"all {len(wanted)} packages are there"
    if newer:
        yield "warn", f"newer than tested: {', '.join(newer)}. The tested versions are in {TESTED}."


def _torch() -> Iterator[Finding]:
    import torch

    x = torch.ones(3, requires_grad=True)
    (x @ x).backward()
    if x.grad is None or x.grad.numpy().tolist() != [2.0, 2.0, 2.0]:
        yield "broken", f"torch {torch.__version__} takes a wrong gradient: {how_to_install()}."
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "the CPU"
    yield "ok", f"torch {torch.__version__} for {build}, {torch.get_num_threads()} threads"


def _kernel() -> Iterator[Finding]:
    if not importlib.util.find_spec("jupyterlab"):
        yield (
            "warn",
            f"`course learn` opens JupyterLab, which is not here: {how_to_install('lab')}.",
        )
        return
    from course_lib.files import jupyter_kernel

    name, spec = jupyter_kernel.named()
    if jupyter_kernel.runs_here(spec):
        yield "ok", f"notebooks run on this Python, by the kernel {name}"
    else:
        where = f"notebooks run on another Python, {spec.argv[0]}"
        yield "warn", f"{where}: `course learn` makes this one their kernel."


def _machine() -> Iterator[Finding]:
    import psutil

    memory = psutil.virtual_memory()
    amount = f"{memory.total / GIGABYTE:.1f} GB of memory, {memory.available / GIGABYTE:.1f} free"
    if memory.total < MEMORY:
        yield "warn", f"{amount}: close other programs before the lessons that train."
    else:
        yield "ok", amount
    yield "ok", f"{os.cpu_count()} cores"


def _data() -> Iterator[Finding]:
    from course_lib.data import store

    for name, item in store.ITEMS.items():
        if store.is_intact(name):
            yield "ok", f"{name}: {item.what}"
        elif (store.cache_folder() / item.file).exists():
            repair = f"`course fetch --remove {name}`, then `course fetch {name}`"
            yield "broken", f"{name} is damaged: run {repair}."
        else:
            where = ", ".join(item.lessons)
            yield "warn", f"{name} is missing, for lesson {where}: run `course fetch {name}`."
    folder = store.cache_folder()
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    yield "ok", f"the cache {folder} holds {size / 1e6:.1f} MB"
    yield _room(folder, "set COURSE_CACHE to a folder on another disk")


def _isolation() -> Iterator[Finding]:
    from course_lib.grading.judging.isolation import AS_ROOT, best_level, is_root, problems

    if (level := best_level()) != "plain":
        yield "ok", f"`course grade` keeps students' code in {level}"
    else:
        lacking = f"`course grade`, for instructors, has no sandbox here: {problems()}."
        yield "warn", f"{lacking} docs/GRADING.md grades in a container."
    if is_root():
        yield "warn", f"`course grade`: {AS_ROOT}"


def _workspace(named: Path | None) -> Iterator[Finding]:
    from course_lib.files import ipynb
    from course_lib.files.releases import damage

    try:
        folder = shared.workspace(named).folder
    except CommandError as none:
        yield "warn", str(none)
        return
    if not os.access(folder, os.W_OK):
        yield "broken", f"the workspace {folder} cannot be written to: change its permissions."
        return
    notebooks = ipynb.listed(folder)
    for problem in filter(None, map(damage, notebooks)):
        yield "broken", problem
    yield "ok", f"the workspace {folder} holds {len(notebooks)} notebooks"
    yield _room(folder, "make room before you go on")


def _room(folder: Path, advice: str) -> Finding:
    there = next(x for x in (folder, *folder.parents) if x.exists())
    free = shutil.disk_usage(there).free
    amount = f"{free / GIGABYTE:.1f} GB free in {there}"
    return ("warn", f"{amount}: {advice}.") if free < DISK else ("ok", amount)
