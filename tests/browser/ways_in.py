"""From nothing to the first panel, by each way in: `make ways`.

Each way has an empty folder and a new environment, and installs the commit that is checked out;
packages come from where pip's and uv's settings say. Its end is the panel of lesson 00's first
check, in Chromium. Colab's and Kaggle's front ends are not ours to start: there a kernel of their
age runs the notebook. build/browser/ways-in.md has a table of what each took.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path
from urllib.parse import unquote, urlparse

import httpx
import nbformat
import pytest
from nbclient import NotebookClient

from course_lib.command_line.learn import FIRST
from course_lib.files.paths import ROOT
from lessons.published import SOURCE
from tests.browser.lab import PICTURES, opened, serving

CHECK, PANEL = 'check("start/hello", double)', "start/hello: not attempted yet"
LAB = "jupyter lab --allow-root --no-browser --LabApp.default_url=/lab/tree/workspace/" + FIRST
NOTEBOOK = (
    "jupyter notebook --allow-root --no-browser --JupyterNotebookApp.default_url=/notebooks/"
    + FIRST
)
CONTAINER = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf8"))
BINDER = "python -m pip install -q -r .binder/requirements.txt && .binder/postBuild"
# what a shell runs to install, and what opens Jupyter; a way that names no wheel begins in a clone
WAYS = {
    "clone, make learn, with uv": ("", "make learn ARGS=--no-browser"),
    "clone, make learn, with pip": ("", "make learn ARGS=--no-browser"),
    "wheel, pip": ("python -m pip install -q {wheel}", "course learn --no-browser"),
    "wheel, uvx": ("", "uvx --from {wheel} course learn --no-browser"),
    "Binder's script": (BINDER, LAB),
    "devcontainer's commands": (CONTAINER["postCreateCommand"], CONTAINER["postAttachCommand"]),
    "Jupyter Notebook 7": (
        f"python -m pip install -q {{wheel}} notebook && cp {ROOT}/notebooks/{FIRST} .",
        NOTEBOOK,
    ),
}
KERNELS = {
    "one notebook, newest kernel": ["ipykernel", "ipython"],
    "one notebook, oldest kernel": ["ipykernel==6.17.1", "ipython==7.34.0"],
}


@pytest.fixture(scope="module")
def kept():
    """Collect what each way took, and write it down as a table."""
    rows = ["| way in | MB of packages | MB of data | seconds, installed | first panel |"]
    yield lambda name, *numbers: rows.append(
        f"| {name} | {' | '.join('' if x is None else f'{x:.0f}' for x in numbers)} |"
    )
    rows.insert(1, "|:-|-:|-:|-:|-:|")
    (PICTURES / "ways-in.md").write_text("\n".join(rows) + "\n", "utf8")


@pytest.fixture
def environment(tmp_path):
    """Make a new environment of Python, whose programs come first on PATH."""
    venv.create(tmp_path / "environment", with_pip=True)
    own = {x: y for x, y in os.environ.items() if x not in ("VIRTUAL_ENV", "PYTHONPATH")}
    yield own | {
        "PATH": f"{tmp_path / 'environment' / 'bin'}{os.pathsep}{own['PATH']}",
        "COURSE_CACHE": str(tmp_path / "data"),
        "UV_CACHE_DIR": str(tmp_path / "uv-cache"),
    }
    shutil.rmtree(tmp_path, ignore_errors=True)  # two gigabytes for each way


@pytest.mark.parametrize("name", WAYS)
def test_a_way_in_jupyter(name, wheel, environment, browser, tmp_path, kept):
    install, serve = (text.format(wheel=wheel) for text in WAYS[name])
    from_clone = "{wheel}" not in "".join(WAYS[name])
    folder = tmp_path / "clone" if from_clone else tmp_path / "empty"
    folder.mkdir()
    megabytes = downloads(environment, str(wheel), *(["notebook"] if "Notebook" in name else []))
    path = [x for x in environment["PATH"].split(os.pathsep) if not (Path(x) / "uv").exists()]
    if "uv" in name:
        (tmp_path / "uv").mkdir()
        for program in ("uv", "uvx"):
            (tmp_path / "uv" / program).symlink_to(Path(sys.executable).with_name(program))
        path.insert(0, str(tmp_path / "uv"))
    environment["PATH"] = os.pathsep.join(path)
    start = time.monotonic()
    if from_clone:
        run(f"git clone -q {ROOT} .", folder, environment)
    run(install, folder, environment)
    installed = time.monotonic() - start
    server = serving(shlex.split(serve), folder, tmp_path / "jupyter", environment)
    with server as address, opened(browser, address) as lab:
        lab.run_to(CHECK)
        assert PANEL in lab.panel(CHECK).inner_text()
        panel = time.monotonic() - start
        lab.picture(f"way-{name.replace(' ', '-')}")
    data = sum(x.stat().st_size for x in (tmp_path / "data").rglob("*") if x.is_file()) / 1e6
    kept(name, megabytes, data, installed, panel)


@pytest.mark.parametrize("name", KERNELS)
def test_a_notebook_alone_where_pytorch_is(name, wheel, environment, tmp_path, kept, monkeypatch):
    pins = (ROOT / "constraints.txt").read_text("utf8").split()
    there = [*KERNELS[name], *(x for x in pins if x.startswith(("torch==", "numpy==")))]
    run(f"python -m pip install -q {' '.join(there)}", tmp_path, environment)
    megabytes = downloads(environment, str(wheel))
    notebook = nbformat.read(ROOT / "notebooks" / FIRST, as_version=4)
    end = next(n for n, cell in enumerate(notebook.cells) if cell.source == CHECK)
    notebook.cells = notebook.cells[: end + 1]
    for cell in notebook.cells:
        cell.source = cell.source.replace(SOURCE, f"transformer-course @ {wheel.as_uri()}")
    kernels = tmp_path / "jupyter" / "kernels" / "python3"
    kernels.mkdir(parents=True)
    python = str(tmp_path / "environment" / "bin" / "python")
    command = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": "a stranger's", "language": "python"}
    (kernels / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(kernels.parents[1]))
    start = time.monotonic()
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env=environment)
    panel = time.monotonic() - start
    said = "".join(str(x.get("data")) for x in notebook.cells[-1].outputs)
    assert PANEL in said
    kept(name, megabytes, 0, None, panel)


def run(command, folder, environment):
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert not done.returncode, done.stdout + done.stderr


def downloads(environment, *wanted):
    """Return the megabytes of packages that pip would bring into an environment."""
    asked = "python -m pip install -q --dry-run --report -".split()
    report = subprocess.run([*asked, *wanted], env=environment, capture_output=True, check=True)
    sources = [x["download_info"]["url"] for x in json.loads(report.stdout)["install"]]
    return sum(map(size, sources)) / 1e6


def size(address):
    """Return the bytes of a package at an address; a repository of git counts nothing."""
    if address.startswith("file:"):
        path = Path(unquote(urlparse(address).path))
        return path.stat().st_size if path.is_file() else 0
    answer = httpx.head(address, follow_redirects=True, timeout=60)
    return int(answer.headers.get("content-length", 0))
