"""junit.xml: a test suite a submission, for the pages that CI systems show."""

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from course_lib.grading.marks.schema import Results, SubmissionResult
from course_lib.grading.reports.shared.text import clean, number

OUTCOMES = {
    "known mistake": "failure",
    "wrong": "failure",
    "forbidden": "failure",
    "error": "error",
    "not attempted": "skipped",
    "to be marked": "skipped",
    "unreadable": "error",
    "missing": "error",
    "superseded": "skipped",
}


def files(results: Results) -> dict[str, str]:
    """Return the document; the points are properties of suites and cases."""
    root = Element("testsuites", name="course grade")
    for submission in results["submissions"]:
        root.append(_suite(submission))
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    text = clean(f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n')
    return {"junit.xml": text}


def _suite(submission: SubmissionResult) -> Element:
    name = f"{submission['student']}: {submission['notebook']}"
    suite = Element("testsuite", name=name)
    _properties(
        suite,
        student=submission["student"],
        late=str(submission["late"]).lower(),
        score=number(submission["score"]),
        max_score=number(submission["max_score"]),
    )
    for exercise_id, verdict in submission["exercises"].items():
        points = number(verdict["points"]), number(verdict["max_points"])
        case = _case(suite, exercise_id, verdict["status"], verdict["message"])
        _properties(case, points=points[0], max_points=points[1])
    if submission["status"] != "graded":
        _case(suite, "notebook", submission["status"], submission["message"])
    elif submission["message"]:
        SubElement(suite, "system-out").text = submission["message"]
    outcomes = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    suite.set("tests", str(len(suite.findall("testcase"))))
    for attribute, tag in outcomes.items():
        suite.set(attribute, str(len(suite.findall(f"testcase/{tag}"))))
    return suite


def _case(suite: Element, name: str, status: str, message: str) -> Element:
    case = SubElement(suite, "testcase", name=name, classname=suite.get("name", ""))
    if status in OUTCOMES:
        outcome = SubElement(case, OUTCOMES[status], message=message)
        if outcome.tag != "skipped":
            outcome.set("type", status)
            outcome.text = message
    return case


def _properties(parent: Element, **values: str) -> None:
    properties = Element("properties")
    for name, value in values.items():
        SubElement(properties, "property", name=name, value=value)
    parent.insert(0, properties)
