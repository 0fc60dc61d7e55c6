"""The laws of the book, held by `make book` on the site that it has built in build/book."""

import html
import re
from functools import cache
from urllib.parse import unquote, urlsplit

import pytest

from book.mending import MENDED, mend
from course_lib.checking.catalogue import ids, load
from course_lib.files import course_map
from course_lib.files.paths import ROOT
from tests.book.serving import served
from tests.given_away import FOLDED, given_away, own_lines, unescaped

SITE = ROOT / "build" / "book"
PAGES = sorted(SITE.rglob("*.html"))
LESSONS = [page for page in PAGES if page.is_relative_to(SITE / "lessons")]
SOLUTION = re.compile(r'<details class="solution">.*?</details>', re.DOTALL)
MEGABYTE = 1_000_000
# what a page loads by itself, where a link waits for a click
# not the pages that a link only names: the next one, the index
LOADED = re.compile(
    r"<(?:script|img|iframe|source|link(?! rel=\"(?:index|search|next|prev)\"))\b"
    r"[^>]*?\b(?:src|href)=\"([^\"]+)\""
)
LINKED = re.compile(r"<a\b[^>]*?\bhref=\"([^\"]+)\"")
NAMED = re.compile(r"\bid=\"([^\"]+)\"")

LIVE = 'class="live"'

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

# pictures, formulas, code and tables beyond a box that does not scroll, or beyond the window
CUT = """async () => {
  const cut = part => {
    const right = part.getBoundingClientRect().right;
    if (!part.checkVisibility()) return false;
    for (let box = part; box !== document.body; box = box.parentElement) {
      const flow = getComputedStyle(box).overflowX;
      if (flow === "auto" || flow === "scroll") return false;
      if (flow !== "visible" && right > box.getBoundingClientRect().right + 1) return true;
    }
    return right > innerWidth + 1;
  };
  const parts = [...document.querySelectorAll("img, math, pre, table, iframe")];
  // a deck of slides lays itself out some time after its window has changed
  for (let i = 0; i < 100 && parts.some(cut); i++) await new Promise(x => setTimeout(x, 50));
  return parts.filter(cut).map(part => part.outerHTML.slice(0, 200));
}"""

pytestmark = pytest.mark.skipif(not PAGES, reason="`make book` builds the site first")


@pytest.fixture(params=PAGES, ids=lambda page: str(page.relative_to(SITE)))
def page(request):
    return request.param


@pytest.fixture(scope="module")
def address():
    """Serve the site, and return the address of a page."""
    with served(SITE) as root:
        yield lambda page: f"{root}/{page.relative_to(SITE)}"


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


def test_what_is_mended_on_no_page_is_said(tmp_path):
    (tmp_path / "a.html").write_text('<p class="caption" role="heading">', "utf8")
    unseen = mend(tmp_path)
    assert len(unseen) == len(MENDED) - 1
    assert not [x for x in unseen if "caption" in x]


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


def text_of(page):
    # an explorer's sources are JSON inside a script, and its page an attribute of a frame
    return unescaped(html.unescape(html.unescape(re.sub(r"<[^>]+>", "", page))))


def test_a_solution_is_on_a_page_only_where_it_is_folded(page):
    made_from = {file.stem: file for file in course_map.page_files().values()}.get(page.stem)
    source = made_from.read_text("utf8") if made_from else ""
    assert not given_away(text_of(FOLDED.sub("", read(page))), source)


def test_every_exercise_is_shown_with_its_hints_its_solution_and_both_panels():
    told = {}
    for page in LESSONS:
        folded = [text_of(x) for x in SOLUTION.findall(read(page))]
        shown = [x for x in ids() if re.sub("[/_]", "-", x) in names(page)]
        checked = {*shown}.difference(*(load(x).joins for x in shown))
        assert len(folded) == len(shown)
        assert len(checked) == read(page).count('<details class="wrong" open>')
        for name, solution in zip(shown, folded, strict=True):
            assert all(line in solution for line in own_lines(name)), name
        for name in checked:
            assert f"{name}: passed" in read(page)
            assert f"{name}: not yet" in read(page)
        hints = re.findall(r"<details class=.hint.><summary>Hint 1 of (\d+)</summary>", read(page))
        told |= dict(zip(shown, map(int, hints), strict=True))
    assert told == {name: len(load(name).hints) for name in ids()}


FOCUSED = "part => part === document.activeElement"


def started(tab):
    """Let each live part of a page come near the window, and wait until it is there."""
    tab.evaluate("""async () => {
      for (const part of document.querySelectorAll(".live")) {
        part.scrollIntoView();
        while (!("ready" in part.dataset)) await new Promise(requestAnimationFrame);
      }
    }""")


def test_no_page_is_wider_than_its_window_and_nothing_on_it_is_cut(page, browser, address):
    tab = browser.new_page()
    tab.goto(address(page))
    for width in (1280, 412, 400):
        tab.set_viewport_size({"width": width, "height": 800})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        started(tab)
    tab.evaluate("document.querySelectorAll('details').forEach(x => (x.open = true))")
    assert tab.evaluate(CUT) == []
    tab.close()


def test_a_guess_is_compared_and_kept_in_the_browser(browser, address):
    tab = browser.new_page()
    tab.goto(address(SITE / "lessons" / "00_start_here.html"))
    told = tab.locator(".cell_output pre", has_text=re.compile("easured: 40"))
    assert told.is_hidden()
    form = tab.locator("form.guess").nth(1)
    form.locator("input").fill("35")
    form.get_by_role("button", name="Compare").click()
    assert told.inner_text().startswith("You said 35; measured: 40")
    tab.reload()
    assert told.inner_text().startswith("You said 35")
    tab.close()


def test_the_panel_of_a_wrong_answer_comes_after_a_choice_which_is_judged(browser, address):
    tab = browser.new_page()
    tab.goto(address(SITE / "lessons" / "02_attention.html"))
    form, panel = tab.locator("form.why").first, tab.locator("form.why + .cell").first
    assert panel.is_hidden()
    form.locator("[data-no]").first.click()
    assert panel.is_visible()
    assert form.locator(".right").count() == form.locator(".not").count() == 1
    right = form.locator(".right").inner_text().strip()
    assert right in panel.inner_text()
    tab.close()


def test_a_button_copies_code_and_is_seen_by_who_has_no_mouse(browser, address):
    tab = browser.new_context(permissions=["clipboard-read", "clipboard-write"]).new_page()
    tab.goto(address(SITE / "lessons" / "02_attention.html"))
    button = tab.locator(".cell_input pre + .copybtn:visible").first
    code = button.locator("xpath=preceding-sibling::pre")
    button.focus()
    assert button.evaluate("x => getComputedStyle(x).outlineStyle") == "solid"
    button.press("Enter")
    copied = tab.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == code.inner_text().strip()
    assert not tab.locator(".output .copybtn").count()


@pytest.mark.parametrize("width", [1280, 400])
def test_an_anchor_below_a_live_part_stays_where_it_is(browser, address, width):
    tab = browser.new_page(viewport={"width": width, "height": 800})
    moving = [page for page in PAGES if LIVE in read(page)]
    assert SITE / "index.html" in moving
    for page in moving:
        _, _, below = read(page).rpartition(LIVE)
        name = re.findall(r'<section id="([^"]+)"', below)[0]
        tab.goto(f"{address(page)}#{name}", wait_until="networkidle")
        top = f"document.getElementById('{name}').getBoundingClientRect().top"
        tab.wait_for_function(f"() => 0 <= {top} && {top} < 100", timeout=5_000)  # it glides
    tab.close()


def test_a_word_is_read_and_a_letter_is_a_list(browser, address):
    tab = browser.new_page(reduced_motion="reduce")
    tab.goto(address(SITE / "index.html"))
    part = tab.locator("[data-live=read_aloud]")
    started(tab)
    sounds = part.locator(".sounds b")
    tab.wait_for_function("() => document.querySelector('.said')?.textContent")
    assert sounds.all_inner_texts() == [*"F AA1 N AH0 G R AE2 F end".split()]
    letter = part.get_by_label("Letter 2 of 10")
    letter.focus()
    letter.select_option("i")
    assert letter.evaluate(FOCUSED)
    assert part.get_by_label("A word").input_value() == "pionograph"
    tab.wait_for_function("() => document.querySelectorAll('.readings li').length === 2")
    assert sounds.first.inner_text() == "P"
    tab.close()


def test_the_model_writes_from_the_keyboard_within_six_megabytes(browser, address):
    tab, weights = browser.new_page(reduced_motion="reduce"), []
    tab.on("response", lambda answer: weights.append(len(answer.body())))
    tab.goto(address(SITE / "index.html"))
    started(tab)
    tab.get_by_role("button", name="Load the model").press("Enter")
    part = tab.locator("[data-live=writer]")
    pause = part.get_by_role("button", name="Pause")
    pause.wait_for()
    assert pause.evaluate(FOCUSED)
    tab.keyboard.press("Enter")
    text = part.locator(".text")
    before = text.inner_text()
    part.get_by_role("button", name="One character").press("Space")
    assert text.inner_text() != before
    part.get_by_role("button", name="Layer 1, head 1").press("Space")
    assert text.locator(".lit").count() > 1
    tab.wait_for_function("() => document.querySelector('.loss').textContent.includes('nats')")
    assert re.search(r"the model loses 1\.\d\d .*; the counts lose 1\.\d\d", part.inner_text())
    tab.wait_for_load_state("networkidle")
    assert MEGABYTE < sum(weights) < 6 * MEGABYTE
    tab.close()


# whether a point at the middle of a part shows it: it is clipped nowhere, and behind nothing
SEEN = """part => {
  part.scrollIntoView({ block: "center" });
  const { left, top, width, height } = part.getBoundingClientRect();
  return document.elementFromPoint(left + width / 2, top + height / 2) === part;
}"""


@pytest.mark.parametrize("width", [1280, 400])
def test_slides_are_seen_and_lead_back_to_their_lesson(browser, address, width):
    tab = browser.new_page(viewport={"width": width, "height": 720})
    for lesson in course_map.lessons():
        deck = address(SITE / "slides" / f"{lesson.file.stem}.html")
        for place, part in (("#/0", "h1"), ("#/1", "img")):
            tab.goto(deck + place)
            tab.locator(".reveal.ready").wait_for()
            assert tab.locator(part).first.evaluate(SEEN), lesson.number
        assert tab.locator("a.lesson").evaluate(SEEN)
    tab.close()


SMALL = """() => [...document.querySelectorAll(".live :is(input, button, select)")].filter(part => {
  const { width, height } = part.getBoundingClientRect();
  return Math.min(width, height) < 24;
}).map(part => part.outerHTML)"""


def test_parts_are_large_enough_to_be_touched_and_sliders_say_what_is_shown(browser, address):
    tab = browser.new_page(has_touch=True, is_mobile=True, viewport={"width": 400, "height": 800})
    tab.goto(address(SITE / "index.html"))
    started(tab)
    tab.get_by_role("button", name="Load the model").tap()
    tab.locator(".loss").wait_for()
    assert tab.evaluate(SMALL) == []
    warm = tab.locator(".slider", has_text="Temperature τ")
    warm.locator("input").fill("-1")
    told = warm.locator("input").get_attribute("aria-valuetext")
    assert told == warm.locator("output").inner_text() == "0.10"
    tab.close()


def test_a_search_shows_the_words_in_their_place(browser, address):
    tab, weights = browser.new_page(), []
    tab.on("response", lambda answer: weights.append(len(answer.body())))
    tab.goto(address(SITE / "search.html") + "?q=rotary")
    found = tab.locator("#found li")
    found.nth(5).wait_for()
    assert "04 · Positions" in found.locator("a").all_inner_texts()
    assert all("rotary" in x.lower() for x in found.locator("p").all_inner_texts())
    tab.wait_for_load_state("networkidle")
    assert sum(weights) < MEGABYTE
    tab.close()


def test_a_file_of_the_repository_that_a_page_names_is_a_link(page):
    if not page.is_relative_to(SITE / "components"):
        text = re.sub(r"<a\b.*?</a>|<pre.*?</pre>|<[^>]+>", "", read(page), flags=re.DOTALL)
        assert not re.findall(r"\b[A-Z_]{4,}\.md\b", text)


def test_every_picture_has_a_text(page):
    for picture in re.findall(r"<img\b[^>]*>", read(page)):
        assert re.search(r'\balt="[^"]', picture), picture


def test_an_address_that_is_wrong_gets_a_page_whose_links_hold_anywhere():
    text = read(SITE / "404.html")
    assert '<base href="' in text
    assert 'href="#' not in text


def test_without_scripts_everything_is_there(browser, address):
    tab = browser.new_page(java_script_enabled=False)
    tab.goto(address(SITE / "lessons" / "02_attention.html"))
    assert all(x.is_visible() for x in tab.locator("form.why + .cell").all())
    assert tab.locator(".cell_output pre", has_text="Measured: ").first.is_visible()
    assert "needs JavaScript" in tab.locator(".live").first.inner_text()
    assert not any(x.is_visible() for x in tab.locator("form.guess, form.why").all())
    tab.close()


def test_a_link_to_a_lesson_shows_its_title_and_its_question():
    for lesson in course_map.lessons():
        text = read(SITE / "lessons" / f"{lesson.file.stem}.html")
        told = dict(re.findall(r'<meta property="og:(\w+)" content="([^"]*)"', text))
        assert html.unescape(told["title"]).endswith(lesson.title)
        assert html.unescape(told["description"]) == lesson.question
        assert f'<meta name="description" content="{told["description"]}">' in text


def test_axe_finds_nothing_that_keeps_a_reader_out_in_light_and_dark(page, browser, address):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    tab = browser.new_page()
    tab.goto(address(page))
    started(tab)
    tab.evaluate(UNFOLD)
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        # what is right is not listed, which takes longer than to find it
        found = axe.run(tab, options={"resultTypes": ["violations"]})
        assert not found.response["violations"], f"{scheme}\n{found.generate_report()}"
    tab.close()
