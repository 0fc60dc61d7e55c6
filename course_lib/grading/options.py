"""The options of `course grade` that decide grades: its rules, which a later run goes on with."""

import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # every command declares its options, and this would load the grader
    from course_lib.grading.marks.schema import Option

SECONDS = 20  # for all that an exercise asks of an answer


class Rule(NamedTuple):
    """An option that decides grades, and what holds where nobody gives it."""

    name: str
    usual: Any
    is_file: bool


class Group:
    """Declares options of one kind; those of `rules` decide grades."""

    def __init__(self, parser: ArgumentParser, title: str):
        self.add = parser.add_argument_group(title).add_argument
        self.rules: list[Rule] = []

    def rule(self, option: str, usual: Any = None, **said: Any) -> None:
        """Declare a rule; without a usual value, none holds where nobody gives it."""
        action = self.add(option, **said)
        usual = action.default if usual is None else usual
        self.rules.append(Rule(action.dest, usual, action.type is Path))


def completed(options: Namespace, before: dict[str, "Option"]) -> tuple[Namespace, str]:
    """Fill in rules that were not given: the earlier run's, or the usual ones.

    Returned are all options, and those that are the earlier run's, as they are typed.
    """
    values, taken = dict(vars(options)), []
    for name, usual, is_file in options.rules:
        if values[name] is not None and values[name] is not False and values[name] != []:
            continue
        value = before.get(name, usual)
        values[name] = Path(str(value)) if is_file and value else value
        taken += _words(name, value) if name in before else []
    return Namespace(**values), shlex.join(taken)


def unusual(options: Namespace) -> dict[str, "Option"]:
    """Return the rules that are not the usual ones, for results.json."""
    values = vars(options)
    found = [x for x in options.rules if values[x.name] != x.usual]
    return {x.name: str(values[x.name]) if x.is_file else values[x.name] for x in found}


def _words(name: str, value: "Option | None") -> list[str]:
    """Write an option as it is typed."""
    option = f"--{name.replace('_', '-')}"
    if value is True:
        return [option]
    values = value if isinstance(value, list) else [value]
    return [word for x in values for word in (option, f"{x:g}" if isinstance(x, float) else str(x))]
