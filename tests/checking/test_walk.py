"""The way from an answer to its verdict, as `python -m tests.walk` traces it."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("walk", ["check in a notebook, wrong", "course grade, the judge"])
def test_no_text_is_parsed_twice_and_one_exercise_is_imported(walk):
    command = [sys.executable, "-m", "tests.walk", walk]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    *_, most, exercises = printed.split()
    assert (most, exercises) == ("1", "1")
