"""Feedback pages in one zip file for each platform, under the names that it takes back.

Moodle: "Upload multiple feedback files in a zip" reads `name_NUMBER_plugintype_plugin_`, parts
between underscores of which the second is the participant's number (`feedback/file/importziplib`).
Canvas: "Upload submissions" looks for the numbers of student and file in the name that it gave.
"""

import io
import zipfile
from pathlib import PurePosixPath

from course_lib.grading.marks.schema import Results, SubmissionResult
from course_lib.grading.reports import feedback

EARLIEST = (1980, 1, 1, 0, 0, 0)  # the same results give the same bytes


def archives(results: Results) -> dict[str, bytes]:
    """Return a zip file, by its name, for each platform whose names are among the submissions."""
    pages: dict[str, dict[str, str]] = {}
    rows = zip(results["submissions"], feedback.files(results).values(), strict=True)
    for submission, page in rows:
        platform = submission.get("platform")
        if platform and (name := _name(submission, platform)):
            pages.setdefault(f"feedback_{platform.lower()}.zip", {})[name] = page
    return {name: _packed(inside) for name, inside in sorted(pages.items())}


def _name(submission: SubmissionResult, platform: str) -> str | None:
    """Return the name under which a page finds its student; None where the platform gave none."""
    if platform == "Canvas":
        # a text or a link has no file to which a page could belong
        return f"{submission['notebook']}.html" if submission["notebook"] else None
    name, _, number = submission["student"].rpartition("_")
    place = PurePosixPath(submission["notebook"])
    # a student may have one of the same name in each of several folders
    page = "/".join(place.parts[1:]) or place.name or "feedback"
    name = name.replace("_", " ").replace("/", " ").lstrip(".~")
    return f"{name}_{number}_assignsubmission_file_/{page}.html"


def _packed(inside: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted(inside.items()):
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text, zipfile.ZIP_DEFLATED)
    return file.getvalue()
