"""Times as people and platforms write them: deadlines, extensions, stamps, Moodle's worksheet."""

import re
from datetime import UTC, datetime

# Moodle's own: "Wednesday, 25 November", the year, "11:58 PM"
MOODLE = ("%d %B %Y, %I:%M %p", "%d %B %Y, %I:%M:%S %p", "%d %B %Y, %H:%M")
WORDS = {r", noon$": ", 12:00 PM", r", midnight\b.*$": ", 12:00 AM", r"^[A-Za-z]+day, ": ""}


def parse_time(text: str) -> datetime:
    """Read "2026-12-01 23:59+01:00", "... UTC" or Moodle's way to write it, as a time of UTC.

    Without a zone it is this machine's. Raises ValueError.
    """
    written = " ".join(text.split())
    for word, meant in WORDS.items():
        written = re.sub(word, meant, written)
    try:
        return _read(written).astimezone(UTC)
    except (OverflowError, OSError):  # in the year 1 or 9999, another zone is beyond all dates
        raise ValueError(f"{text} is beyond all dates") from None


def deadline(text: str) -> datetime:
    """Read a time up to which something is in time: 23:59 is its whole minute, a date its day.

    Raises ValueError.
    """
    clock = re.search(r"\d:\d\d(:\d\d)?", text)
    if not clock:
        return parse_time(f"{text} 23:59:59.999999")
    time = parse_time(text)
    return time if clock[1] else time.replace(second=59, microsecond=999_999)


def _read(text: str) -> datetime:
    for form in MOODLE:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    date, *rest = text.replace("UTC", "Z").split() or [""]
    return datetime.fromisoformat(f"{date} {''.join(rest)}".strip())
