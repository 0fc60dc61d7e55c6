"""From nothing to the first panel, by each way in: `make ways`.

Each way has an empty folder and a new environment, and installs the commit that is checked out;
packages come from where pip's and uv's settings say. Its end is the panel of lesson 00's first
check, in Chromium. Colab's and Kaggle's front ends are not ours to start. There a kernel of their
age runs the notebook; and Colab's own kernel, with the versions that it publishes, where COLAB
names a folder that holds googlecolab's repositories `colabtools` and `backend-info`.
build/browser/ways-in.md has a table of what each took.
"""

import json
import os
import re
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
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from course_lib.command_line.learn import FIRST
from course_lib.files.paths import ROOT
from course_lib.files.releases import INSTALLATION
from lessons.build import INSTALL
from lessons.published import PROJECT, SOURCE
from tests.browser.lab import PICTURES, opened, serving

CHECK, PANEL = 'check("start/hello", double)', "start/hello: not attempted yet"
LAB = "jupyter lab --allow-root --no-browser --LabApp.default_url=/lab/tree/workspace/" + FIRST
NOTEBOOK = (
    "jupyter notebook --allow-root --no-browser --JupyterNotebookApp.default_url=/notebooks/"
    + FIRST
)
# what its Dockerfile runs in the course's folder, and how it begins; the system's part is Docker's
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf8")
STEPS = [x for x in re.findall(r"^RUN (.+)$", DOCKERFILE, re.MULTILINE) if x[:3] in ("pip", ".ve")]
[BEGINS] = re.findall(r"^CMD (.+)$", DOCKERFILE, re.MULTILINE)
BINDER = "python -m pip install -q -r .binder/requirements.txt && .binder/postBuild"
# what a shell runs to install, and what opens Jupyter; a way that names no wheel begins in a clone
WAYS = {
    "clone, make learn, with uv": ("", "make learn ARGS=--no-browser"),
    "clone, make learn, with pip": ("", "make learn ARGS=--no-browser"),
    "wheel, pip": ("python -m pip install -q {wheel}[lab]", "course learn --no-browser"),
    "wheel, uvx": ("", "uvx --torch-backend auto --from {wheel}[lab] course learn --no-browser"),
    "clone, uv run": ("", "uv run --extra lab course learn --no-browser"),
    "Binder's script": (BINDER, LAB),
    "the image's steps": (" && ".join(STEPS), f".venv/bin/{shlex.join(json.loads(BEGINS))}"),
    "Jupyter Notebook 7": (
        f"python -m pip install -q {{wheel}} notebook && cp {ROOT}/notebooks/{FIRST} .",
        NOTEBOOK,
    ),
}
PINS = (ROOT / "constraints.txt").read_text("utf8").split()
PIN = re.compile(r"^([\w.-]+)==(\S+)$", re.MULTILINE)
COLAB = os.environ.get("COLAB", "")
PLAIN = ["-m", "ipykernel_launcher"]
COLABS = [
    "-c",
    "from google.colab._kernel import Kernel; from ipykernel.kernelapp import launch_new_instance;"
    "launch_new_instance(kernel_class=Kernel)",
]
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
    there = [*KERNELS[name], *(x for x in PINS if x.startswith(("torch==", "numpy==")))]
    run(f"python -m pip install -q {' '.join(there)}", tmp_path, environment)
    megabytes = downloads(environment, str(wheel))
    name_kernel(PLAIN, tmp_path, monkeypatch)
    kept(name, megabytes, 0, None, seconds_to_the_first_check(wheel, environment, tmp_path))


@pytest.mark.skipif(not COLAB, reason="needs Colab's repositories in the folder COLAB")
def test_colab_keeps_its_packages_and_starts_again(wheel, environment, tmp_path, kept, monkeypatch):
    lines = Path(COLAB, "backend-info", "pip-freeze.txt").read_text("utf8").split()
    published = {canonicalize_name(x): f"{x}=={y}" for x, y in re.findall(PIN, "\n".join(lines))}
    needed = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["lab"]]
    needed += ["traitlets", "anywidget", "httplib2"]  # of its kernel, which does not say so
    names = {canonicalize_name(Requirement(x).name) for x in needed} & published.keys()
    there = [published[x] for x in sorted(names)]
    there += [x for x in PINS if x.startswith("torch==")]
    install = f"python -m pip install -q {Path(COLAB, 'colabtools')} {' '.join(there)}"
    run(install, tmp_path, environment)
    before, megabytes = packages(environment), downloads(environment, str(wheel))
    name_kernel(COLABS, tmp_path, monkeypatch)
    for session in ("first session", "restarted"):
        seconds = seconds_to_the_first_check(wheel, environment, tmp_path)
        kept(f"Colab's kernel, {session}", megabytes, 0, None, seconds)
        assert before <= packages(environment)


def name_kernel(program, folder, monkeypatch):
    """Let Jupyter's default kernel be a program of the new environment."""
    kernels = folder / "jupyter" / "kernels" / "python3"
    kernels.mkdir(parents=True)
    command = [str(folder / "environment" / "bin" / "python"), *program, "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": "a stranger's", "language": "python"}
    (kernels / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(kernels.parents[1]))


def seconds_to_the_first_check(wheel, environment, folder):
    """Run lesson 00 alone, in a new kernel, up to the panel of its first check."""
    notebook = nbformat.read(ROOT / "notebooks" / FIRST, as_version=4)
    end = next(n for n, cell in enumerate(notebook.cells) if cell.source == CHECK)
    notebook.cells = notebook.cells[: end + 1]
    [first] = [x for x in notebook.cells if x.id == INSTALLATION]
    first.source = INSTALL.replace(SOURCE, f"transformer-course @ {wheel.as_uri()}")
    start = time.monotonic()
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment)
    assert PANEL in "".join(str(x.get("data")) for x in notebook.cells[-1].outputs)
    return time.monotonic() - start


def packages(environment):
    """Return the packages of an environment, each with its version."""
    command = ["python", "-m", "pip", "list", "--format=freeze"]
    return {*subprocess.check_output(command, env=environment, text=True).split()}


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
