"""What a kernel of `course learn` says of a name that no cell has given yet."""

import os
import subprocess
import sys

import pytest
from jupyter_client.manager import start_new_kernel

from course_lib.checking.notebook import name_errors
from course_lib.files import jupyter_kernel


@pytest.fixture
def page(tmp_path, save_notebook):
    path = tmp_path / "01.ipynb"
    save_notebook(path, "from torch import nn\n%time 1", "def f():\n    local = 1", "look = nn\n")
    return path


@pytest.mark.parametrize("by", ["Jupyter", "VS Code"])
def test_a_name_of_the_page_is_one_sentence_and_any_other_pythons_own(page, by):
    environment = os.environ | {"PYTHONSTARTUP": str(jupyter_kernel.STARTUP)}
    environment |= {name_errors.NOTEBOOK: str(page) if by == "Jupyter" else ""}
    manager, client = start_new_kernel(env=environment)

    def said(code):
        content = client.execute_interactive(
            code, store_history=True, output_hook=lambda _: None, timeout=60
        )["content"]
        return content.get("traceback")

    try:
        if by == "VS Code":
            said(f"{name_errors.VS_CODES} = {str(page)!r}")
        assert said("look.load()") == [name_errors.SENTENCE.format("look")]
        assert said("1 + f") == [name_errors.SENTENCE.format("f")]
        for other in ("local", "print(look)\nlook = 1", "1 / 0"):
            assert len(said(other)) > 1
        assert said("[x for x in dir() if 'explain' in x][0]")[-1].count("list index out of range")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_kernel_begins_with_it_and_python_in_a_terminal_does_not_mind():
    done = subprocess.run(
        [sys.executable, str(jupyter_kernel.STARTUP)], capture_output=True, text=True, check=True
    )
    assert done.stdout + done.stderr == ""
