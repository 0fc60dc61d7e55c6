"""The laws of the repository itself: versions, and which part may import which."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import course_lib
from course_lib.checking.catalogue import ids, load, outline
from course_lib.files.course_map import lesson_of
from course_lib.files.paths import ROOT, lessons_of_module

COURSE = ROOT / "course_lib"
# each part may import those before it, and its own; components those of no later lesson
COMPONENTS = "components"
ORDER = [
    ["files"], [COMPONENTS], ["efficient"], ["data", "instruments"], ["pretrained"], ["answers"],
    ["checking"], ["exercises"], ["xray"], ["grading"], ["verify"], ["command_line"],
]  # fmt: skip
PINS = {*(ROOT / "constraints.txt").read_text("utf8").lower().split()}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]


def modules_imported(file):
    """Name the modules of the course that a file imports, without the package."""
    for node in ast.walk(ast.parse(file.read_text("utf8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (n.removeprefix("course_lib.") for n in names if n.startswith("course_lib."))


def rank(part):
    """Return the place of a part in the order; components follow each other by their lessons."""
    folder = (COURSE / part).is_dir()
    [place] = [i for i, parts in enumerate(ORDER) if (part if folder else COMPONENTS) in parts]
    return place, 0 if folder else lessons_of_module(part)[0]


def test_imports_flow_one_way():
    for file in COURSE.rglob("*.py"):
        part = file.relative_to(COURSE).parts[0].removesuffix(".py")
        if part in ("__init__", "old_names"):
            continue
        for other in {name.partition(".")[0] for name in modules_imported(file)}:
            assert rank(other) <= rank(part), f"{file.name} imports {other}, which comes later"


def test_an_exercise_builds_a_component_of_its_own_lesson():
    for exercise_id in ids():
        module = load(exercise_id).reference.__module__.split(".")[1]
        lesson = int(lesson_of(outline(exercise_id).lesson))
        assert lesson in lessons_of_module(module), exercise_id


def test_no_module_is_in_a_circle_of_imports():
    folder = ROOT / "course_lib"
    files = {".".join(x.relative_to(folder).with_suffix("").parts): x for x in folder.rglob("*.py")}
    files = {name.removesuffix(".__init__"): file for name, file in files.items()}
    left = {name: _modules_named(file, files) - {name} for name, file in files.items()}
    # what imports nothing that is left is in no circle
    while free := {name for name, imported in left.items() if not imported & left.keys()}:
        left = {name: imported for name, imported in left.items() if name not in free}
    assert not left


def _modules_named(file, modules):
    """Name the modules that a file imports: of `from a import b` it is `a.b`, or else `a`."""
    named = modules_imported(file)
    return {x if x in modules else x.rpartition(".")[0] for x in named}


def test_plots_are_imported_by_notebooks_alone():
    pictures = ("instruments.plots", "instruments.drawings")
    for file in COURSE.rglob("*.py"):
        imported = any(name.startswith(pictures) for name in modules_imported(file))
        assert not imported or file.stem == "drawings" or file.parent.name == "pictures", file


def test_conda_environment_has_the_same_ranges():
    text = (ROOT / "environment.yml").read_text("utf8")
    conda = dict(re.findall(r"^  - ([\w-]+)(>=[\d.,<]+)$", text, flags=re.MULTILINE))
    renamed = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
    wanted = {"python": PROJECT["requires-python"]}
    lab = PROJECT["optional-dependencies"]["lab"]
    for requirement in map(Requirement, PROJECT["dependencies"] + lab):
        wanted[renamed.get(requirement.name, requirement.name)] = str(requirement.specifier)
    assert {name: SpecifierSet(x) for name, x in conda.items()} == {
        name: SpecifierSet(x) for name, x in wanted.items()
    }


# what Colab has of the library's packages, and what it adds: googlecolab/backend-info of 2026-08-19
COLAB = {
    "torch": "2.11.0", "numpy": "2.1.3", "safetensors": "0.8.0", "tokenizers": "0.22.2",
    "einops": "0.8.2", "matplotlib": "3.10.0", "ipython": "7.34.0", "nbformat": "5.11.1",
    "jinja2": "3.1.6", "markupsafe": "3.0.3", "platformdirs": "4.11.3", "tqdm": "4.67.3",
    "rich": "13.9.4", "packaging": "26.3", "psutil": "5.9.5", "pip": "24.1.2",
}  # fmt: skip
BROUGHT = {"gguf", "jaxtyping"}


def test_the_library_changes_no_package_of_colabs():
    needed = {x.name: x.specifier for x in map(Requirement, PROJECT["dependencies"])}
    assert needed.keys() == COLAB.keys() | BROUGHT
    assert all(needed[name].contains(version) for name, version in COLAB.items())


def test_no_package_has_an_upper_bound():
    extras = PROJECT["optional-dependencies"].values()
    for requirement in map(Requirement, sum(extras, PROJECT["dependencies"])):
        assert [x.operator for x in requirement.specifier] == [">="], requirement


def test_a_pin_admits_every_python_that_the_course_admits():
    pythons = [f"3.{minor}.{patch}" for minor in range(11, 15) for patch in range(20)]
    for package in metadata.distributions():
        if f"{package.name}=={package.version}".lower() in PINS:
            admitted = SpecifierSet(package.metadata.get("Requires-Python", ""))
            assert [x for x in pythons if x not in admitted] == [], package.name


def test_windows_and_macos_run_the_commands_of_the_readme():
    text = (ROOT / "README.md").read_text("utf8")
    commands = re.findall(r"(?:^|`)(uv run --extra [^`\n]+)", text, re.MULTILINE)
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text("utf8")
    job = workflow[workflow.index("os: [macos-latest, windows-latest]") :]
    assert len(commands) == 2
    assert all(f"- run: {command}" in job for command in commands)


@pytest.mark.parametrize("name", ["CHANGELOG.md", "CITATION.cff"])
def test_the_pages_name_the_version(name):
    assert course_lib.__version__ in (ROOT / name).read_text("utf8")


@pytest.fixture
def make_learn(tmp_path):
    """Run `make learn` where the only Pythons are of these minor versions, by their commands."""
    if os.name == "nt" or not shutil.which("make"):
        pytest.skip("needs make, and scripts of sh")
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    bin_ = tmp_path / "bin"
    bin_.mkdir()

    def run(**minors):
        for name in ("python3", "python3.14", "python3.13", "python3.12", "python3.11", "python"):
            minor = minors.get(name.replace(".", "_"), 10)
            pretend = f"import sys; sys.version_info = (3, {minor}, 0); exec(sys.argv[1])"
            (bin_ / name).write_text(
                f"#!/bin/sh\n"
                f'case $1 in -c) exec {sys.executable} -c "{pretend}" "$2";;\n'
                f"-V) echo Python 3.{minor};; *) echo took 3.{minor}; exit 1;; esac\n"
            )
            (bin_ / name).chmod(0o755)
        environment = {"PATH": f"{bin_}:/usr/bin:/bin"}
        ran = subprocess.run(
            ["make", "learn"], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert ran.returncode
        return ran

    return run


def test_an_old_python_is_refused_in_one_sentence(make_learn):
    assert "This course needs Python 3.11 or newer and found none" in make_learn().stderr


def test_a_tested_python_is_taken_before_a_newer_one(make_learn):
    assert make_learn(python3=13, python3_12=12).stdout == "took 3.13\n"
    assert make_learn(python3=15, python3_12=12).stdout == "took 3.12\n"
    alone = make_learn(python3=15).stdout
    assert alone.startswith("The course is not tested with Python 3.15 yet")
    assert alone.endswith("took 3.15\n")


def test_no_two_modules_have_one_name():
    # exercises are named by their ids; verify, commands and pictures mirror what they are about
    mirrors = {"exercises", "verify", "command_line", "pictures"}
    files = [x for x in COURSE.rglob("*.py") if not mirrors & set(x.parts)]
    names = [x.stem for x in files if not x.stem.startswith("__")]
    assert len(names) == len(set(names)), {x for x in names if names.count(x) > 1}


def test_what_windows_lacks_is_imported_only_where_it_is_used():
    lacking = {"fcntl", "grp", "pwd", "resource", "termios"}
    linux_alone = ROOT / "course_lib" / "grading" / "judging" / "inside"
    folders = ("course_lib", "lessons", "research")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    for file in files:
        if not file.is_relative_to(linux_alone):
            body = ast.parse(file.read_text("utf8")).body
            named = {x.name for line in body if isinstance(line, ast.Import) for x in line.names}
            assert not named & lacking, file


def test_texts_are_utf8_whatever_code_page_windows_has():
    grading = ROOT / "course_lib" / "grading" / "judging"  # refuses Windows
    folders = ("course_lib", "lessons", "book", "research")
    for file in (file for folder in folders for file in (ROOT / folder).rglob("*.py")):
        if not file.is_relative_to(grading):
            for call in ast.walk(ast.parse(file.read_text("utf8"))):
                assert not isinstance(call, ast.Call) or not _by_the_code_page(call), file


def _by_the_code_page(call):
    """Tell whether a call reads or writes a text without saying in which encoding."""
    said = {x.arg for x in call.keywords}
    match call.func, call.args:
        case (ast.Attribute(attr="read_text"), []) | (ast.Attribute(attr="write_text"), [_]):
            return "encoding" not in said
        case ast.Attribute(attr="run" | "Popen" | "check_output"), _:
            return "text" in said and "encoding" not in said
        case ast.Name("open"), [_, *mode]:
            return "encoding" not in said and not any("b" in ast.unparse(x) for x in mode)
    return False
