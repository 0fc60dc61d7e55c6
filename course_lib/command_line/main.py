"""The command line `course`: what it understands, and how it ends.

Each command is a module beside this one: it declares its arguments and does its work. What imports
torch is imported by the command that needs it, in its `run`, so that the others are quick.

A command returns 0, or 1 where what it looked at has failed. What its reader got wrong is one
sentence and 2.
"""

import argparse
import difflib
import importlib
import io
import os
import sys
from collections.abc import Iterable
from typing import NoReturn, Protocol, cast

import course_lib
from course_lib.files.errors import CommandError

# their modules, in the order in which `course --help` shows them
COMMANDS = (
    "learn", "check", "watch", "progress", "list_exercises", "hint", "solution", "reset",
    "certificate", "fetch", "doctor", "verify", "grade", "upload", "export", "exam",
)  # fmt: skip


class Command(Protocol):
    """What the module of a command holds."""

    NAME: str  # as it is typed
    WHAT: str  # it does, in one line of `course --help`
    EXAMPLE: str  # of what may follow the name

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare what may follow the name."""

    def run(self, options: argparse.Namespace) -> int:
        """Do the work, and return the exit status. Raises CommandError."""
        ...


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a file or a pipe gets every sign, whatever Windows' code page has; a console without
            # ✓ shows ? for it
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="replace")
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_MININTERVAL", "10")  # few lines of a bar in a log
    words = list(sys.argv[1:] if arguments is None else arguments)
    end = words.index("--") if "--" in words else len(words)
    # a command that is called as its module is needs no other one
    named = words[0] if words and words[0] in COMMANDS else None
    parser, names = _parser([named] if named else COMMANDS)
    if words and not words[0].startswith("-") and words[0] not in names:
        near = difflib.get_close_matches(words[0], names, n=1)
        meant = f"did you mean {near[0]}?" if near else "`course --help` lists them."
        return _refuse(f"there is no command {words[0]!r}: {meant}")
    options, unknown = parser.parse_known_args(words[:end])
    options.further = unknown + words[end + 1 :]
    if options.run is None:
        parser.print_help()
        return 0
    if options.further and not options.takes_further:
        parser.error(f"{options.further[0]} is not understood")
    try:
        status = options.run(options)
        sys.stdout.flush()
        return status
    except CommandError as error:
        return _refuse(str(error))
    except ImportError as error:
        return _refuse(f"{error}: `course doctor` says what to do.")
    except BrokenPipeError:  # the reader of a pipe has gone, as in `course list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _refuse(f"{error.filename or 'a file'}: {error.strerror}.")
    except KeyboardInterrupt:
        return 130


def _refuse(sentence: str) -> int:
    print(f"course: {sentence}", file=sys.stderr)
    return 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; `{self.prog} --help` shows how.\n")


def _parser(modules: Iterable[str] = COMMANDS) -> tuple[argparse.ArgumentParser, list[str]]:
    """Return what understands the commands of some modules, and their names."""
    parser = _Parser(
        prog="course",
        description="The Transformer, built step by step in notebooks.",
        epilog="Example: course learn",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {course_lib.__version__}")
    parser.set_defaults(run=None, takes_further=False)
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    for module in modules:
        command = cast(Command, importlib.import_module(f"course_lib.command_line.{module}"))
        what = command.WHAT
        added = subparsers.add_parser(
            command.NAME,
            help=what,
            description=f"{what[0].upper()}{what[1:]}.",
            epilog=f"Example: course {command.NAME} {command.EXAMPLE}".rstrip(),
            allow_abbrev=False,
        )
        added.set_defaults(run=command.run)
        command.add_arguments(added)
    return parser, list(subparsers.choices)
