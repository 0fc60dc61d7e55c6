"""The laws of the book, held by `make book` on the site that it has built in build/book."""

import html
import re
from functools import cache
from urllib.parse import unquote, urlsplit

import pytest

from course_lib.answers.source import source_of, stub
from course_lib.checking.catalogue import ids, load
from course_lib.files.paths import ROOT

SITE = ROOT / "build" / "book"
PAGES = sorted(SITE.rglob("*.html"))
MEGABYTE = 1_000_000
# what a page loads by itself, where a link waits for a click
LOADED = re.compile(r"<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=\"([^\"]+)\"")
LINKED = re.compile(r"<a\b[^>]*?\bhref=\"([^\"]+)\"")
NAMED = re.compile(r"\bid=\"([^\"]+)\"")

# all that is folded; of the thousands of words of code one in each colour, against each ground
UNFOLD = """() => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  const seen = new Set();
  for (const word of document.querySelectorAll("pre span[class]")) {
    const ground = word.closest(".cell_input, .cell_output, dd, section")?.className;
    const kind = `${word.className} on ${ground}`;
    if (seen.has(kind)) word.replaceWith(...word.childNodes);
    seen.add(kind);
  }
}"""

pytestmark = pytest.mark.skipif(not PAGES, reason="`make book` builds the site first")


@pytest.fixture(params=PAGES, ids=lambda page: str(page.relative_to(SITE)))
def page(request):
    return request.param


@cache
def read(page):
    return page.read_text("utf8")


@cache
def names(page):
    return set(map(html.unescape, NAMED.findall(read(page))))


def target(page, address):
    """Return the file and the name that an address leads to from a page."""
    parts = urlsplit(html.unescape(address))
    return (page.parent / unquote(parts.path)).resolve() if parts.path else page, parts.fragment


def test_links_inside_lead_somewhere(page):
    for address in LINKED.findall(read(page)):
        if urlsplit(address).scheme not in ("http", "https"):
            file, name = target(page, address)
            assert file.is_file(), address
            assert not name or unquote(name) in names(file), address


def test_nothing_is_loaded_from_elsewhere(page):
    for address in LOADED.findall(read(page)):
        assert not urlsplit(address).netloc, address
        assert urlsplit(address).scheme in ("", "data"), address
    for style in SITE.rglob("*.css"):
        assert not re.search(r"@import|url\([\"']?(?:https?:)?//", read(style)), style


def loaded(page):
    """List the files that a page loads, those of its style sheets too."""
    found = {target(page, address)[0] for address in LOADED.findall(read(page))}
    for style in [x for x in found if x.suffix == ".css"]:
        inside = re.findall(r"url\([\"']?([^\"')]+)", read(style))
        found |= {target(style, x)[0] for x in inside if not x.startswith("data:")}
    return {page, *(x for x in found if x.is_file())}


def test_a_page_is_light(page):
    weight = sum(file.stat().st_size for file in loaded(page))
    assert weight < (MEGABYTE if page == SITE / "index.html" else 3 * MEGABYTE)


@cache
def own_lines(exercise_id):
    """List the lines that a solution has and its stub has not, without spaces."""
    exercise = load(exercise_id)
    given = [*map(squeezed, stub(exercise.reference, exercise.methods).splitlines())]
    lines = source_of(exercise.reference).splitlines()
    code = [squeezed(x) for x in lines if not x.lstrip().startswith("#")]
    return [x for x in code if x not in given and len(x) > 8]


def squeezed(text):
    return "".join(text.split())


def test_no_page_holds_a_solution(page):
    # an explorer's sources are JSON inside a script, and its page an attribute of a frame
    text = html.unescape(html.unescape(re.sub(r"<[^>]+>", "", read(page))))
    text = squeezed(text.replace('\\"', '"').replace("\\n", ""))
    for name in ids():
        lines = own_lines(name)
        assert not lines or any(line not in text for line in lines), name


def test_every_exercise_is_shown_with_its_hints_folded():
    lessons = "".join(read(page) for page in PAGES if page.parent.name == "lessons")
    told = re.findall(r"<details class=.hint.><summary>Hint 1 of (\d+)</summary>", lessons)
    assert list(map(int, told)) == [len(load(name).hints) for name in ids()]


def test_axe_finds_nothing_that_keeps_a_reader_out_in_light_and_dark(page, browser):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    tab = browser.new_page()
    tab.goto(page.as_uri())
    tab.evaluate(UNFOLD)
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        # what is right is not listed, which takes longer than to find it
        found = axe.run(tab, options={"resultTypes": ["violations"]})
        assert not found.response["violations"], f"{scheme}\n{found.generate_report()}"
    tab.close()
