"""JupyterLab as a reader's hands and eyes meet it: keys, clicks, what a cell shows, pictures."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, sync_playwright

from course_lib.files.paths import ROOT

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
PICTURES = ROOT / "build" / "browser"
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 400, "height": 860}
PATIENCE = 60_000  # milliseconds that a step may take on a busy machine
START = 600  # seconds that Jupyter may take, with all that it installs first
# what Lab itself complains of, with or without the course: that no language server is installed
# for its code completion, and that a kernel was restarted
LABS_OWN = (
    "Error during socket reconnect",
    "Connection failed for",
    "disconnecting",
    "Cancelling further attempts to connect",
    "WebSocket is already in CLOSING or CLOSED state",
)
CONTRAST = Path(__file__).with_name("contrast.js").read_text("utf8")
NOTEBOOK = ".jp-NotebookPanel:not(.lm-mod-hidden)"


@contextmanager
def chromium() -> Iterator[Browser]:
    """Open this system's Chromium."""
    with sync_playwright() as running:
        # as root, and in containers, its own sandbox cannot start
        opened = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@contextmanager
def learning(workspace: Path, clock: str = "0.2") -> Iterator[str]:
    """Run `course learn` and give the address that it prints. Raises RuntimeError if none comes.

    Trainings end early, by the clock: their bar is looked at, not their result.
    """
    command = [sys.executable, "-m", "course_lib.command_line", "learn", "--no-browser"]
    environment = os.environ | {"COURSE_CLOCK": clock, "PYTHONPATH": str(ROOT)}
    command += ["--workspace", str(workspace)]
    with serving(command, ROOT, workspace.parent / "jupyter", environment) as address:
        yield address


@contextmanager
def serving(
    command: list[str], folder: Path, own: Path, environment: dict[str, str]
) -> Iterator[str]:
    """Run a command that starts Jupyter in a folder, and give the address that it prints.

    Settings, signatures and the log are in a folder of their own. Raises RuntimeError if no address
    comes.
    """
    log = own / "log"
    (own / "ipython").mkdir(parents=True, exist_ok=True)
    notes = own / "settings" / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    notes.parent.mkdir(parents=True, exist_ok=True)
    notes.write_text('{"recordTiming": true}')
    environment = environment | {
        "JUPYTER_CONFIG_DIR": str(own / "config"),
        "JUPYTER_DATA_DIR": str(own / "data"),
        "JUPYTER_RUNTIME_DIR": str(own / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(own / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(own / "workspaces"),
        "IPYTHONDIR": str(own / "ipython"),
    }
    with log.open("w") as file:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield _address(log, server)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGTERM)  # `make` passes nothing on
            server.wait(30)


def _address(log: Path, server: subprocess.Popen) -> str:
    for _ in range(10 * START):
        if found := re.search(r"http://(localhost|127\.0\.0\.1)\S+", log.read_text("utf8")):
            return found.group()
        if server.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(f"no Jupyter came:\n{log.read_text('utf8')}")


@contextmanager
def opened(browser: Browser, address: str) -> Iterator["Lab"]:
    """Open an address in a tab of a browser."""
    with browser.new_page(viewport=WIDE, color_scheme="light") as page:  # type: ignore
        page.set_default_timeout(PATIENCE)
        lab = Lab(page)
        page.goto(address)
        lab.ready()
        yield lab


class Lab:
    """One tab of a browser with JupyterLab in it."""

    def __init__(self, page: Page):
        self.page = page
        self.complaints: list[str] = []
        page.on("console", self._listen)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        PICTURES.mkdir(parents=True, exist_ok=True)

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(x in message.text for x in LABS_OWN):
            self.complaints.append(message.text)

    def ready(self) -> None:
        """Wait until a notebook is there and its kernel waits for work."""
        self.notebook.locator(".jp-Cell").first.wait_for()
        # what is run before the kernel is connected, Lab forgets; Notebook 7 has no bar to tell
        if "/lab" in self.page.url:
            self.page.locator("#jp-main-statusbar", has_text="| Idle").wait_for()
        self.idle()

    def idle(self) -> None:
        """Wait until nothing runs and nothing waits to run."""
        self.page.wait_for_function(
            """notebook => {
                const panel = document.querySelector(notebook);
                const prompts = [...panel.querySelectorAll('.jp-InputPrompt')];
                const light = panel.querySelector('.jp-Notebook-ExecutionIndicator');
                return light?.dataset.status === 'idle'
                    && !prompts.some(prompt => prompt.textContent.includes('*'));
            }""",
            arg=NOTEBOOK,
        )

    @property
    def notebook(self) -> Locator:
        """The notebook that is in front."""
        return self.page.locator(NOTEBOOK)

    @property
    def active(self) -> Locator:
        """The cell that the keyboard is at."""
        return self.notebook.locator(".jp-Notebook-cell.jp-mod-active")

    def cell(self, text: str) -> Locator:
        """The code cell that has a text in its source."""
        source = self.page.locator(".jp-InputArea", has_text=text)
        return self.notebook.locator(".jp-CodeCell", has=source).first

    def panel(self, text: str) -> Locator:
        """What the cell with this source shows first, below itself."""
        panel = self.cell(text).locator(".jp-OutputArea-output").first
        # Lab draws nothing that is far away, and a drawing has to be there before it is read
        panel.scroll_into_view_if_needed()
        return panel

    def run(self) -> None:
        """Run the active cell and wait for what it shows."""
        self.page.keyboard.press("Shift+Enter")
        self.idle()

    def run_to(self, text: str) -> None:
        """Press Shift+Enter until the cell with this source has run."""
        self.go_to(text)
        self.run()

    def go_to(self, text: str) -> None:
        """Press Shift+Enter until the keyboard is at the cell with this source."""
        for _ in range(300):
            before = self.active.get_attribute("data-windowed-list-index")
            if text in (self.active.text_content() or ""):
                return
            self.page.keyboard.press("Shift+Enter")
            self.page.wait_for_function(
                """([notebook, before]) => document.querySelector(notebook)
                    .querySelector('.jp-mod-active').dataset.windowedListIndex !== before""",
                arg=[NOTEBOOK, before],
            )
        raise AssertionError(f"no cell has {text!r}")

    def write(self, cell: str, line: str) -> None:
        """Put another last line into a cell, as one does by hand, and run the cell."""
        self.cell(cell).locator(".cm-content").click()
        self.page.keyboard.press("Control+End")
        self.page.keyboard.press("Shift+Home")
        self.page.keyboard.type(line)
        self.run()

    def run_cell(self, cell: str) -> None:
        """Run the cell with this source, wherever it is."""
        self.cell(cell).locator(".cm-content").click()
        self.run()

    def check(self, cell: str) -> str:
        """Run the cell with this source and return what it shows."""
        self.run_cell(cell)
        return " ".join(self.panel(cell).inner_text().split())

    def save(self) -> None:
        """Save the notebook and wait until it is on the disk."""
        self.page.keyboard.press("Control+s")
        self.page.locator(".lm-TabBar-tab.lm-mod-current.jp-mod-dirty").wait_for(state="detached")

    def open(self, name: str) -> None:
        """Open a notebook from the list of files."""
        self.page.locator(".jp-DirListing-item", has_text=name[:8]).dblclick()
        self.notebook.locator("h1", has_text=name[:2]).wait_for()
        self.ready()

    def menu(self, *names: str) -> None:
        """Choose from Lab's menus."""
        self.page.get_by_role("menuitem", name=names[0], exact=True).first.click()
        for name in names[1:]:
            self.page.locator(".lm-Menu-item", has_text=name).first.click()

    def picture(self, name: str, what: Locator | None = None) -> Path:
        """Keep a picture of the window, or of one thing in it."""
        path = PICTURES / f"{name}.png"
        if what:
            what.scroll_into_view_if_needed()
        (what or self.page).screenshot(path=path, animations="disabled")
        return path

    def looks(self, name: str, what: Locator) -> None:
        """Keep a thing's pictures: in light and dark, in a window and on a phone.

        Raises AssertionError where its text is hard to read.
        """
        hard = {}
        for scheme in ("light", "dark"):
            self.theme(scheme)
            hard[scheme] = what.evaluate(CONTRAST)
            for width, size in (("wide", WIDE), ("phone", PHONE)):
                self.resize(size)
                self.picture(f"{name}-{scheme}-{width}", what)
        self.theme("light")
        self.resize(WIDE)
        assert hard == {"light": [], "dark": []}, hard

    def theme(self, scheme: str) -> None:
        """Let the system's colours be light or dark, and wait until Lab's are."""
        self.page.emulate_media(color_scheme=scheme)  # type: ignore
        self.page.wait_for_function(
            """dark => (getComputedStyle(document.body)
                .getPropertyValue('--jp-layout-color0').trim() === 'white') !== dark""",
            arg=scheme == "dark",
        )

    def resize(self, size: dict[str, int]) -> None:
        """Give the window another size; on a phone, the list of files is closed, as one would."""
        self.page.set_viewport_size(size)  # type: ignore
        files = self.page.locator(".jp-SideBar.jp-mod-left [data-id=filebrowser]")
        if self.page.locator("#filebrowser").is_visible() != (size == WIDE):
            files.click()
            self.active.focus()
        self.page.wait_for_timeout(300)
