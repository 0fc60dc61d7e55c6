"""Writing files so that nobody ever finds half of one."""

import contextlib
import os
import tempfile
import time
from pathlib import Path

PATIENCE = 1.0  # seconds for which a file may stay open elsewhere


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a whole file or nothing: an interruption or a full disk leaves the old one.

    Raises OSError where it cannot be written; nothing half-written stays behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        _replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _umask() -> int:
    """Return which rights new files do not get: asking for it is setting it."""
    os.umask(mask := os.umask(0o077))
    return mask


def _replace(name: str, path: Path) -> None:
    """Put a file in another one's place; on Windows a scanner may have that one open a while."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return os.replace(name, path)
        except PermissionError as error:
            if getattr(error, "winerror", None) not in (5, 32) or time.monotonic() > end:
                raise
        time.sleep(0.05)
