"""Who has handed in what, as the file that goes with Gradescope's export says it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

METADATA = "submission_metadata.yml"
NAMED_BY = (":sid", ":email", ":name")


class Submitter(NamedTuple):
    """One of those who have handed in a folder, and when; a group has several."""

    student: str
    time: datetime | None


def submitters(text: str) -> dict[str, list[Submitter]]:
    """Read the submitters of each folder; none where the text is something else."""
    import yaml  # few grade what Gradescope has collected

    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {str(folder): list(_of(said)) for folder, said in content.items() if _is(said)}


def _is(said: Any) -> bool:
    return isinstance(said, dict) and isinstance(said.get(":submitters"), list)


def _of(said: dict) -> Iterator[Submitter]:
    time = said.get(":created_at")
    if isinstance(time, datetime):
        time = time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)
    else:
        time = None
    for person in said[":submitters"]:
        if isinstance(person, dict) and (
            names := [str(x) for y in NAMED_BY if (x := person.get(y))]
        ):
            yield Submitter(names[0], time)
