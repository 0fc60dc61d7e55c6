"""The cache of fetched packages, with tiny packages made here and no network."""

import ast
import dataclasses
import functools
import hashlib
import io
import os
import re
import shutil
import tarfile
import zipfile
from collections import namedtuple

import pytest

from course_lib.data import store
from course_lib.files.course_map import lesson_of, page_files
from course_lib.files.paths import ROOT

BACKEND = "def prepare_metadata_for_build_wheel(folder, settings=None):\n" + "\n".join(
    f"    {line}"
    for line in (
        "import pathlib",
        "info = pathlib.Path(folder, 'tale-1.0.dist-info')",
        "info.mkdir()",
        "(info / 'METADATA').write_text('Metadata-Version: 2.1\\nName: tale\\nVersion: 1.0\\n')",
        "return info.name",
    )
)
SDIST = {
    "tale-1.0/PKG-INFO": "Metadata-Version: 2.1\nName: tale\nVersion: 1.0\n",
    "tale-1.0/pyproject.toml": (
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    ),
    "tale-1.0/backend.py": BACKEND,
    "tale-1.0/texts/tale.txt": "Once upon a time.",
}


def item_of(path, name, options=()):
    """Describe a package file as the course's table does."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return store.Item(
        name, f"{name}==1.0", path.name, digest, len(content), "us", "none", "a test", (), options
    )


def make_wheel(folder, name):
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{name}/words.txt", f"the words of {name} " * 100)
        info = f"{name}-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return item_of(path, name)


def make_sdist(folder):
    path = folder / "tale-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as sdist:
        for name, text in SDIST.items():
            part = tarfile.TarInfo(name)
            part.size = len(text)
            sdist.addfile(part, io.BytesIO(text.encode()))
    return item_of(path, "tale", ("--no-binary", "tale"))


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """Stand two packages, a wheel and an sdist, where pip looks; return their folder."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    items = [make_wheel(folder, "lexicon"), make_sdist(folder)]
    monkeypatch.setattr(store, "ITEMS", {item.name: item for item in items})
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "a cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", folder.as_uri())
    return folder


@pytest.fixture
def no_pip(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("pip was called")

    monkeypatch.setattr(store, "_run_pip", refuse)


def put(name, shelf):
    """Lay an item into the cache without pip; return its file."""
    store.cache_folder().mkdir(exist_ok=True)
    return shutil.copy(shelf / store.ITEMS[name].file, store._path(name))


def test_what_was_fetched_is_read_in_place_and_not_fetched_again(shelf, monkeypatch, capfd):
    sizes = sum(item.size for item in store.ITEMS.values())
    assert store.fetch() == sizes
    assert "WARNING" not in "".join(capfd.readouterr())
    assert store.is_intact("lexicon")
    assert store.read("lexicon", "lexicon/words.txt") == b"the words of lexicon " * 100
    assert "lexicon/words.txt" in store.members("lexicon")
    assert store.read("tale", "tale-1.0/texts/tale.txt") == b"Once upon a time."
    assert set(store.members("tale")) == set(SDIST)
    with pytest.raises(KeyError):
        store.read("tale", "tale-1.0/texts/other.txt")

    monkeypatch.setattr(store.subprocess, "Popen", None)
    assert store.fetch() == 0

    assert store.remove() == sizes
    assert store.remove() == 0
    assert not store.is_fetched("tale")


def test_what_fails_stops_no_other_and_the_next_fetch_brings_only_the_rest(shelf, monkeypatch):
    lexicon = store.ITEMS["lexicon"]
    absent = dataclasses.replace(lexicon, name="absent", requirement="absent==1.0", file="absent")
    gone = dataclasses.replace(lexicon, name="gone", requirement="gone==1.0", file="gone")
    forged = dataclasses.replace(make_wheel(shelf, "forged"), sha256="0" * 64)
    monkeypatch.setattr(
        store, "ITEMS", {item.name: item for item in (absent, gone, forged, lexicon)}
    )
    with pytest.raises(store.FetchError) as failure:
        store.fetch()
    about_absent, about_forged = str(failure.value).splitlines()
    assert "absent, gone: no package index answered, or none has it" in about_absent
    assert "forged: what came is not forged==1.0 with the expected hash" in about_forged
    assert [path.name for path in store.cache_folder().iterdir()] == [lexicon.file]

    monkeypatch.setattr(store, "ITEMS", {"lexicon": lexicon, "forged": make_wheel(shelf, "forged")})
    assert store.fetch() == store.ITEMS["forged"].size


def test_without_a_network_one_sentence_names_all_and_the_first_item_alone_is_tried(
    shelf, monkeypatch
):
    tried, run_pip = [], store._run_pip
    monkeypatch.setattr(store, "_run_pip", lambda item, *x: tried.append(item) or run_pip(item, *x))
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9")  # nobody listens there
    for item in store.ITEMS.values():
        monkeypatch.setitem(store.ITEMS, item.name, dataclasses.replace(item, options=()))
    with pytest.raises(store.FetchError) as failure:
        store.fetch()
    (said,) = str(failure.value).splitlines()
    assert said.startswith("lexicon, tale: ")
    assert len(tried) == 1


def test_an_interrupted_fetch_leaves_nothing_that_counts_as_fetched(shelf, monkeypatch):
    def interrupted(item, partial, bar):
        (partial / item.file).write_bytes(b"half of it")
        raise KeyboardInterrupt

    left_by_a_kill = store.cache_folder() / "partial" / "whole"
    left_by_a_kill.mkdir(parents=True)
    shutil.copy(shelf / store.ITEMS["lexicon"].file, left_by_a_kill)
    assert not store.is_fetched("lexicon")

    monkeypatch.setattr(store, "_run_pip", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.fetch()
    assert list(store.cache_folder().iterdir()) == []


def test_a_file_that_pip_let_through_with_a_wrong_hash_is_refused(shelf, monkeypatch):
    def careless(item, partial, bar):
        (partial / item.file).write_bytes(bytes(item.size))
        return partial / item.file

    monkeypatch.setattr(store, "_run_pip", careless)
    with pytest.raises(store.FetchError, match="with the expected hash, so it was thrown away"):
        store.fetch(["lexicon"])
    assert not store.is_fetched("lexicon")


def test_a_full_disk_is_told_before_pip_starts(shelf, monkeypatch, no_pip):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(store.shutil, "disk_usage", lambda path: usage(10**9, 10**9 - 9, 9))
    with pytest.raises(store.FetchError, match="takes 64 MB, more than is free in "):
        store.fetch(["lexicon"])


def test_a_cache_that_cannot_be_written_is_told(shelf, monkeypatch, tmp_path, no_pip):
    (tmp_path / "file").touch()
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(store.FetchError, match="set COURSE_CACHE to a folder that you may"):
        store.fetch(["lexicon"])


@pytest.mark.parametrize("name", ["lexicon", "tale"])
@pytest.mark.parametrize("harm", ["truncated", "one byte changed"])
def test_a_damaged_file_is_told_when_it_is_read(shelf, name, harm):
    path = put(name, shelf)
    content = bytearray(path.read_bytes())
    if harm == "truncated":
        del content[-40:]
    else:
        content[60] ^= 255
    path.write_bytes(content)
    member = {"lexicon": "lexicon/words.txt", "tale": "tale-1.0/texts/tale.txt"}[name]
    with pytest.raises(store.Damaged, match=f"`course fetch --remove {name}`, then"):
        store.read(name, member)
    assert not store.is_intact(name)


def test_what_was_never_fetched_is_told_with_the_command(shelf):
    with pytest.raises(store.NotFetched, match="run `course fetch lexicon`"):
        store.read("lexicon", "lexicon/words.txt")


def test_an_unknown_name_is_answered_with_the_nearest(shelf):
    for use in (store.is_fetched, store.members, lambda name: store.fetch([name])):
        with pytest.raises(ValueError, match="'lexikon': did you mean 'lexicon'"):
            use("lexikon")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("/usr/bin/python3: No module named pip", "-m ensurepip"),
        ("OSError: [Errno 28] No space left on device", "more than is free"),
        ("OSError: [WinError 112] Es steht nicht genug Speicher zur Verfügung", "more than is"),
        ("pip._vendor.urllib3.exceptions.ReadTimeoutError: Read timed out.", "check the network"),
        ("ERROR: Could not find an activated virtualenv.\n", "said: ERROR: Could not find an act"),
        ("", "said: nothing"),
    ],
)
def test_each_failure_of_pip_becomes_one_sentence(shelf, said, sentence):
    reason = store._reason(store.ITEMS["lexicon"], said)
    assert sentence in reason
    assert "\n" not in reason


@functools.cache
def items_read_by(module):
    """Name the items that a module of the course reads, itself or through those it imports."""
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    if not path.is_file() or path.stem == "store":
        return frozenset()
    return used_in(path.read_text("utf8"))


def used_in(source):
    """Name the items that a source reads or needs, or whose reader it imports."""
    items = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            words = {x.value for x in node.args if isinstance(x, ast.Constant)}
            items |= words & set(store.ITEMS)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for parent in ("course_lib.data", "course_lib.pretrained"):
                if node.module == parent:
                    items |= {x for a in node.names for x in items_read_by(f"{parent}.{a.name}")}
                elif node.module.startswith(f"{parent}."):
                    items |= items_read_by(node.module)
    return frozenset(items)


def test_each_item_names_the_lessons_that_use_it():
    used = [
        (lesson_of(page), item)
        for page, path in page_files().items()
        for item in used_in(path.read_text("utf8"))
    ]
    for item in store.ITEMS.values():
        assert item.lessons == tuple(sorted({x for x, y in used if y == item.name})), item.name


def test_the_data_page_tells_of_every_item():
    page = (ROOT / "docs" / "DATA.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) == len(store.ITEMS)
    for row, item in zip(rows, store.ITEMS.values(), strict=True):
        name, _, requirement, size, source, licence, lessons = row.strip("| ").split(" | ")
        assert (name, requirement) == (f"`{item.name}`", f"`{item.requirement}`")
        assert (size, source) == (f"{item.size / 1e6:.1f} MB", item.source)
        assert licence == item.licence
        assert source
        assert tuple(lessons.split(", ")) == item.lessons


def test_the_data_page_tells_of_all_weights_what_they_were_trained_on():
    page = (ROOT / "docs" / "DATA.md").read_text(encoding="utf-8")
    for file in (ROOT / "research" / "results" / "weights").iterdir():
        [row] = [
            x for x in page.splitlines() if x.startswith(f"`research/results/weights/{file.name}`")
        ]
        assert any(f"of `{item}` (" in row for item in store.ITEMS), file.name
        [megabytes] = re.findall(r"bits \(([\d.]+) MB\)", row)
        assert megabytes == f"{file.stat().st_size / 1e6:.1f}", file.name


@pytest.mark.parametrize("harm", [lambda data: data[:-1], lambda data: b"?" + data[1:]])
def test_an_unpacked_file_that_is_not_the_wheels_is_written_anew(shelf, harm):
    put("lexicon", shelf)
    file = store.unpacked("lexicon", "lexicon/words.txt")
    text = file.read_bytes()
    file.write_bytes(harm(text))
    assert store.unpacked("lexicon", "lexicon/words.txt").read_bytes() == text


def test_an_unpacked_file_goes_with_its_item(shelf):
    put("lexicon", shelf)
    file = store.unpacked("lexicon", "lexicon/words.txt")
    assert store.remove(["lexicon"]) > store.ITEMS["lexicon"].size
    assert not file.exists()
    with pytest.raises(store.NotFetched):
        store.unpacked("lexicon", "lexicon/words.txt")


def test_many_small_files_of_a_wheel_are_read_at_once(shelf):
    put("lexicon", shelf)
    found = store.read_matching("lexicon", "*/words.txt")
    assert found == {"lexicon/words.txt": b"the words of lexicon " * 100}
    assert store.read_matching("lexicon", "*.json") == {}
