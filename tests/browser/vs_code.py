"""A lesson in VS Code's own notebook editor, as saved: `make ways`.

VS Code is code-server of the npm registry, with no extension and no kernel, in build/vs-code: 300
MB and some minutes the first time. Pictures are in build/browser.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import nbformat
import pytest

from course_lib.files.paths import ROOT
from tests.browser.lab import PATIENCE, PICTURES, START

SERVER = "4.100.3"  # the newest for the Node.js that Debian has
FOLDER = ROOT / "build" / "vs-code"
CODE = FOLDER / "node_modules" / "code-server"
LESSON = "02_attention.ipynb"
NARROW = {"width": 900, "height": 900}  # where figures must shrink
INSTALL = f"""
export npm_config_nodedir=/usr npm_config_build_from_source=true
quiet="--ignore-scripts --no-audit --no-fund"
mkdir -p {FOLDER} && cd {FOLDER} && npm init -y && npm i code-server@{SERVER} $quiet
npm rebuild argon2
cd {CODE}/lib/vscode && npm i --omit=dev $quiet && (cd extensions && npm i --omit=dev $quiet)
ln -sfn node_modules node_modules.asar
npm rebuild @vscode/spdlog native-watchdog
"""
SETTINGS = {
    "workbench.startupEditor": "none",
    "git.enabled": False,
    "npm.autoDetect": "off",
    "task.autoDetect": "off",
}
QUIET = (
    "--auth none --disable-telemetry --disable-update-check --disable-workspace-trust "
    "--disable-getting-started-override"
)
# by how many pixels each figure is wider than its room
FIGURES = """() => [...document.querySelectorAll('.output_container svg')].map(picture => {
    const room = picture.closest('.output_container').getBoundingClientRect();
    const own = picture.getBoundingClientRect();
    return own.right - room.right;
})"""


@pytest.fixture(scope="module")
def code():
    """Install VS Code's server once."""
    if not (shutil.which("npm") and Path("/usr/include/node").is_dir()):
        pytest.skip("needs Node.js, npm and Node's headers: on Debian, `apt-get install npm`")
    if not (CODE / "lib" / "vscode" / "node_modules.asar").exists():
        done = subprocess.run(
            ["sh", "-ec", INSTALL], capture_output=True, text=True, timeout=START, check=False
        )
        assert not done.returncode, done.stdout + done.stderr
    return CODE / "out" / "node" / "entry.js"


@pytest.mark.parametrize("theme", ["Dark", "Light"])
def test_a_saved_lesson_is_readable_in_vs_code(code, browser, tmp_path, theme):
    (tmp_path / "folder").mkdir()
    shutil.copy(ROOT / "notebooks" / LESSON, tmp_path / "folder")
    settings = tmp_path / "user" / "User" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps(SETTINGS | {"workbench.colorTheme": f"Default {theme} Modern"}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = ["node", code, *QUIET.split(), "--bind-addr", address]
    command += ["--config", tmp_path / "none.yaml", "--user-data-dir", tmp_path / "user"]
    command += ["--extensions-dir", tmp_path / "none"]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            while "listening on" not in (tmp_path / "log").read_text("utf8"):
                assert server.poll() is None, (tmp_path / "log").read_text("utf8")
                time.sleep(0.2)
            look(browser, f"http://{address}/?folder={tmp_path / 'folder'}", theme)
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def look(browser, address, theme):
    """Open the lesson, go through it, and compare what is shown with what is in the file."""
    with browser.new_page(viewport=NARROW) as page:
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        # a notebook that is opened before its extension is there would be shown as JSON
        file = page.locator(".explorer-folders-view .monaco-list-row", has_text=LESSON)
        file.wait_for()
        page.wait_for_timeout(8000)
        file.dblclick()
        page.wait_for_selector(".notebookOverlay .monaco-list-row", state="attached")
        page.keyboard.press("Control+b")
        page.mouse.move(700, 600)
        saved = nbformat.read(ROOT / "notebooks" / LESSON, as_version=4).cells
        outputs = [x.get("data", {}) for cell in saved for x in cell.get("outputs", [])]
        wanted = sum("image/svg+xml" in x for x in outputs)
        frame = None
        for _ in range(PATIENCE // 500):
            page.wait_for_timeout(500)
            views = (x for x in page.frames if "webview" in x.url)
            if frame := next((x for x in views if x.query_selector(".output_container")), None):
                break
        assert frame, "no outputs came"
        panel = frame.get_by_text("attention/softmax: passed").first
        for name, part in (("panel", panel), ("figure", frame.locator("svg").nth(4))):
            scroll_to(page, part)
            page.screenshot(path=PICTURES / f"vs-code-{theme.lower()}-{name}.png")
        figures = frame.evaluate(FIGURES)
        assert len(figures) == wanted
        assert max(figures) < 1, "a figure is cut at its right edge"


def scroll_to(page, part):
    """Turn the wheel until a part of the page is in sight."""
    for _ in range(400):
        box = part.bounding_box() if part.count() else None
        if box and 100 < box["y"] < 500:
            page.wait_for_timeout(1000)
            return
        page.mouse.wheel(0, -200 if box and box["y"] <= 100 else 200)
        page.wait_for_timeout(100)
    raise AssertionError("what is looked for does not come into sight")
