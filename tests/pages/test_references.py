"""Laws of the citations: each has its paper in REFERENCES.md, and each paper there is cited."""

import re

import pytest

from course_lib.files.paths import ROOT

NAME = r"[A-Z][a-zA-Zćéöü'’-]+"
YEAR = r"(?:19|20)\d\d[a-z]?"
CITATION = re.compile(
    rf"\b(?P<names>{NAME} et al\.|{NAME} (?:&|and) {NAME}|{NAME}),? \(?(?P<year>{YEAR})\b"
)
NO_NAMES = {"After", "Before", "By", "From", "In", "Of", "Since", "The", "Until", "Copyright"}
KEY = re.compile(rf"^- \*\*(.+ {YEAR})\*\*: .+\. \[.+\]\(https://\S+\)$", flags=re.MULTILINE)
REFERENCES = (ROOT / "docs" / "REFERENCES.md").read_text("utf8")


def cited(text):
    """List the citations of a text in the form of the keys, also those broken over two lines."""
    text = re.sub(r"\s*\n[\s#>]*", " ", text)
    for match in CITATION.finditer(text):
        alone = " " not in match["names"]
        # of one capital word, a year in brackets is no citation: CS224N (2021)
        if match["names"] not in NO_NAMES and not (alone and "(" in match[0]):
            yield f"{match['names']} {match['year']}"


def places():
    folders = ("course_lib", "lessons", "research")
    yield from (file for name in folders for file in sorted((ROOT / name).rglob("*.py")))
    yield ROOT / "lessons" / "topics.tsv"
    yield from (file for file in sorted(ROOT.glob("*.md")) if file.name != "REFERENCES.md")


def test_every_citation_has_its_paper_and_every_paper_is_cited():
    keys, found = KEY.findall(REFERENCES), set()
    for place in places():
        of_place = set(cited(place.read_text("utf8")))
        unknown = of_place.difference(keys)
        assert not unknown, f"{place.relative_to(ROOT)} cites what REFERENCES.md lacks: {unknown}"
        found |= of_place
    assert not set(keys) - found, f"nobody cites {set(keys) - found}"


def test_every_line_of_the_references_is_a_paper_and_they_are_sorted():
    keys = KEY.findall(REFERENCES)
    assert len(keys) == sum(line.startswith("- ") for line in REFERENCES.splitlines())
    assert keys == sorted(set(keys), key=str.lower)


def test_no_two_papers_have_one_link():
    links = re.findall(r"\((https://\S+)\)$", REFERENCES, flags=re.MULTILINE)
    assert len(links) == len(set(links))


@pytest.mark.parametrize(
    ("text", "citations"),
    [
        ("as in Vaswani et al.\n    2017, eq. 1", ["Vaswani et al. 2017"]),
        (
            "# (Levy et al. 2015). Zhang & Sennrich 2019",
            ["Levy et al. 2015", "Zhang & Sennrich 2019"],
        ),
        ("Wang et al. (2020a, quoted); Park & Kim 2019", ["Wang et al. 2020a", "Park & Kim 2019"]),
        ("In 2017, CS224N (2021) and 2026", []),
    ],
)
def test_citations_are_found_as_they_are_written(text, citations):
    assert list(cited(text)) == citations
