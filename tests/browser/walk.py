"""A newcomer's way through Lab, step after step: each test goes on where the last one stopped."""

import pytest

pytest.importorskip("playwright", reason="the browser walk needs playwright: `make browser`")

from course_lib.checking.explain import panel
from course_lib.command_line.learn import FIRST
from course_lib.exercises import verdict
from course_lib.files.course_map import notebook_of, page_files
from course_lib.files.workspace import Workspace
from tests.browser.lab import CONTRAST, PATIENCE, PICTURES, learning, opened
from tests.browser.lessons import by_own_answers, run_all

CHECK, HINT = 'check("start/hello", double)', 'hint("start/hello")'


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("Größe und Ärger") / "mein Kurs")


@pytest.fixture(scope="module")
def lab(browser, workspace):
    with learning(workspace.folder) as address, opened(browser, address) as lab:
        yield lab


def test_learn_opens_lesson_00(lab):
    assert lab.page.title().startswith("00_start_her")
    assert lab.notebook.locator("h1").first.inner_text().startswith("00 · Start here")
    lab.picture("01-lab-opens-on-lesson-00")


def test_an_exercise_that_is_not_begun_says_so(lab):
    lab.run_to(CHECK)
    assert "○ start/hello: not attempted yet" in lab.panel(CHECK).inner_text()
    lab.picture("04-not-attempted", lab.panel(CHECK))


def test_a_wrong_answer_is_diagnosed(lab, workspace):
    lab.write("def double", "return x**2")
    said = lab.check(CHECK)
    assert "✗ start/hello: not yet, 0 of 9 points" in said
    assert "The result is the square of the input." in said
    assert workspace.record("start/hello").attempts == 1
    assert not workspace.record("start/hello").passed
    lab.panel(CHECK).locator("summary", has_text="Tried:").click()
    assert "doubling a sum" in lab.panel(CHECK).inner_text()
    lab.looks("05-wrong-answer", lab.panel(CHECK))


def test_a_syntax_error_does_not_pass_on_the_old_function(lab):
    lab.write("def double", "return 2 * (x")
    assert "is not Python" in lab.check(CHECK)
    lab.picture("06-syntax-error", lab.panel(CHECK))


def test_hints_come_one_after_another(lab, workspace):
    assert lab.check(HINT).startswith("Hint 1 of 2.")
    assert lab.check(HINT).startswith("Hint 2 of 2.")
    assert workspace.record("start/hello").hints == 2
    lab.picture("07-hint", lab.cell(HINT))


def test_a_right_answer_passes_and_is_kept(lab, workspace):
    lab.write("def double", "return 2 * x")
    said = lab.check(CHECK)
    assert "✓ start/hello: passed, 9 of 9 points" in said
    assert "Lesson 00: 1 of 1 exercises, about 25 minutes left. Next: rnn/cell of lesson 01" in said
    record = workspace.record("start/hello")
    assert (record.passed, record.points, record.attempts) == (True, 9, 3)
    lab.panel(CHECK).locator("summary", has_text="The library's version").click()
    lab.looks("08-right-answer", lab.panel(CHECK))


def test_the_next_cells_run_on_ones_own(lab):
    lab.run_to("path = trained(learning_rate=0.1)")
    lab.notebook.get_by_text("double: your own").wait_for()


def test_a_wrong_answer_after_a_pass_says_that_the_pass_stays(lab, workspace):
    lab.write("def double", "return x**2")
    said = lab.check(CHECK)
    assert "✗ start/hello: not yet" in said
    assert "has passed and stays" in said
    assert workspace.record("start/hello").passed
    lab.picture("08-wrong-after-a-pass", lab.panel(CHECK))
    lab.write("def double", "return 2 * x")


def test_a_prediction_is_revealed_and_kept(lab, workspace):
    lab.go_to("guess = None  # two English tokens")
    lab.write("guess = None  # two English tokens", 'guess = ("cat", "black")')
    lab.run_to("reveal(guess, (best[1], best[2]))")
    said = lab.panel("reveal(guess, (best[1]").inner_text()
    assert said.strip() == "You said ('cat', 'black'); measured: ('cat', 'black'). Right."
    [guess] = workspace.guesses().values()
    assert guess.verdict == "right"
    lab.picture("09-prediction-revealed")


def test_pictures_are_drawn(lab):
    lab.go_to("guess = None  # gigabytes")
    lab.idle()
    pictures = lab.notebook.locator(".jp-OutputArea-output img")
    assert pictures.count() == 4
    for picture in pictures.all():
        assert len(picture.get_attribute("alt").split()) > 30
    lab.looks("09-two-machines", pictures.nth(0))
    lab.picture("09-heat-map", pictures.nth(2))


def test_a_guess_that_is_skipped_is_not_answered_by_the_one_before(lab):
    lab.run_to("reveal(guess, n * n * 4 / 1e9)")
    said = lab.panel("reveal(guess, n * n * 4 / 1e9)").inner_text()
    assert said.strip() == "Measured: 40."


def test_after_a_restart_and_run_all_a_check_passes_and_no_hint_is_read(lab, workspace):
    hints = workspace.record("start/hello").hints
    lab.menu("Kernel", "Restart Kernel and Run All Cells…")
    lab.page.locator(".jp-Dialog .jp-mod-accept").click()
    lab.page.set_default_timeout(5 * PATIENCE)  # the page loads two models
    lab.ready()
    lab.page.set_default_timeout(PATIENCE)
    assert "✓ start/hello: passed, 9 of 9 points" in lab.check(CHECK)
    assert workspace.record("start/hello").hints == hints  # Run All asks for none
    lab.picture("08-run-all", lab.panel(CHECK))


def test_the_map_is_ticked_and_leads_to_the_next_lesson(lab):
    lab.run_to("Markdown(course_map())")
    table = lab.panel("Markdown(course_map())")
    row = table.locator("tr", has_text="Start here").inner_text()
    assert row.split()[-4:] == ["✓", "1", "of", "1"]
    lab.picture("09-map-of-the-course", table)
    lab.save()
    table.get_by_role("link", name="What one vector costs").click()
    lab.notebook.locator("h1", has_text="01 · What one vector costs").wait_for()
    lab.ready()
    lab.picture("10-lesson-01")


def test_a_lesson_goes_on_with_the_librarys_until_ones_own_has_passed(lab):
    lab.run_to('rnn_cell = mine("rnn/cell")')
    lab.notebook.get_by_text("rnn_cell: the library's, until yours has passed").wait_for()


def test_the_panel_says_how_much_of_the_lesson_is_left(lab, workspace):
    lab.write("def rnn_cell", "return torch.tanh(w_x @ x + h @ w_h + b)")
    said = lab.check('check("rnn/cell", rnn_cell)')
    assert "✗ rnn/cell: not yet" in said
    lab.picture("11-wrong-sizes", lab.panel('check("rnn/cell"'))
    lab.write("def rnn_cell", "return torch.tanh(x @ w_x + h @ w_h + b)")
    said = lab.check('check("rnn/cell", rnn_cell)')
    assert "✓ rnn/cell: passed, 10 of 10 points" in said
    assert "Lesson 01: 1 of 4 exercises, about 65 minutes left. Next: rnn/unroll" in said
    assert workspace.answer("rnn/cell")


def test_a_restarted_kernel_goes_on_with_what_has_passed(lab):
    lab.menu("Kernel", "Restart Kernel…")
    lab.page.locator(".jp-Dialog .jp-mod-accept").click()
    lab.ready()
    lab.cell("def unroll").locator(".cm-content").click()
    lab.menu("Run", "Run All Above Selected Cell")
    lab.idle()
    lab.notebook.get_by_text("rnn_cell: your own").wait_for()
    lab.picture("12-kernel-restarted")


def test_a_reloaded_page_keeps_its_panels(lab):
    lab.save()
    lab.page.reload()
    lab.ready()
    lab.open("01_rnn_limits.ipynb")  # Lab may have another tab in front
    panel = lab.panel('check("rnn/cell", rnn_cell)').locator("div[style]").first
    panel.get_by_text("passed, 10 of 10 points").wait_for()  # Lab draws it when it is near
    border = panel.evaluate("panel => getComputedStyle(panel).borderLeftWidth")
    assert border == "4px"
    lab.picture("13-page-reloaded", lab.panel('check("rnn/cell", rnn_cell)'))


def test_a_training_shows_its_bar_and_can_be_stopped(lab):
    lab.open("02_attention.ipynb")
    lab.go_to("one_vector = trained(None)")
    lab.page.keyboard.press("Shift+Enter")
    bar = lab.panel("one_vector = trained(None)")
    bar.get_by_text("step").wait_for()
    lab.picture("16-training", bar)
    lab.menu("Kernel", "Interrupt Kernel")
    lab.idle()
    said = lab.cell("one_vector = trained(None)").inner_text()
    assert "the model is kept as it is" in said
    assert "Traceback" not in said
    lab.picture("17-stopped", lab.cell("one_vector = trained(None)"))
    lab.check("attending = trained(attend)")
    lab.picture("17-trained", lab.panel("attending = trained(attend)"))


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """Run one Lab for all pages that nobody has worked in, with hardly any time for trainings."""
    workspace = tmp_path_factory.mktemp("untouched") / "workspace"
    with learning(workspace, clock="0.02") as address:
        yield address + "&reset", workspace  # without the tabs of the page before


@pytest.mark.parametrize("number", page_files())
def test_a_page_runs_alone(number, browser, untouched):
    (address, workspace), name = untouched, notebook_of(page_files()[number])
    own = address.replace(FIRST, name.as_posix())
    assert run_all(browser, own, workspace / name).wrong == []


# what is passed runs real models there
@pytest.mark.parametrize("number", ["09", "10", "11", "17", "18"])
def test_a_page_runs_by_ones_own_answers(number, browser, tmp_path):
    ran = by_own_answers(browser, number, tmp_path / "workspace", clock="0.2")
    assert ran.wrong == []
    slowest = "".join(f"{seconds:6.1f} s  {line}\n" for seconds, line in ran.seconds[:8])
    said = f"{sum(x for x, _ in ran.seconds):.0f} s in all; the slowest cells:\n{slowest}"
    (PICTURES / f"seconds-{number}.txt").write_text(said, "utf8")


# what VS Code's notebooks say of tables and of code (backLayerWebView.ts, 2025), by its themes
VS_CODE = """<!DOCTYPE html><style>
  body {{ color: {ink}; background: {paper}; font: 13px sans-serif; margin: 8px;
          --vscode-editor-font-family: monospace }}
  table, thead, tr, th, td, tbody {{ border: none !important; border-collapse: collapse }}
  table, th, tr {{ vertical-align: middle; text-align: right }}
  th, td {{ padding: 4px 8px }}
  tr:nth-child(even) {{ background-color: rgba(130, 130, 130, 0.08) }}
  code {{ color: {code} }}
</style><div>{panel}</div>"""
THEMES = {
    "light": {"ink": "#3b3b3b", "paper": "#ffffff", "code": "#3b3b3b"},
    "dark": {"ink": "#cccccc", "paper": "#1f1f1f", "code": "#d0d0d0"},
}


@pytest.mark.parametrize("theme", THEMES)
def test_a_panel_is_itself_in_vs_code(lab, theme):
    shown = panel.html(verdict("start/hello", lambda x: x**2))
    page = lab.page.context.browser.new_page(viewport={"width": 700, "height": 320})
    page.set_content(VS_CODE.format(panel=shown, **THEMES[theme]))
    page.locator("summary").click()
    for cell in page.locator("td").all():
        assert cell.evaluate("cell => getComputedStyle(cell).textAlign") == "left"
        row = cell.locator("..").evaluate("row => getComputedStyle(row).backgroundColor")
        assert row == "rgba(0, 0, 0, 0)"
    assert page.locator("body > div").evaluate(CONTRAST) == []
    page.screenshot(path=PICTURES / f"18-vs-code-{theme}.png", full_page=True)
    page.close()


def test_the_browser_has_nothing_to_complain_of(lab):
    (PICTURES / "console.txt").write_text("\n\n".join(lab.complaints), "utf8")
    assert lab.complaints == []
