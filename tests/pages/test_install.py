"""`install.py` is pip, quiet as long as all goes well."""

import subprocess
import sys

from course_lib.files.paths import ROOT

INSTALL = [sys.executable, str(ROOT / "install.py"), "--no-index", "--dry-run"]


def test_what_goes_well_is_one_line():
    done = subprocess.run([*INSTALL, "packaging"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Installed 0 packages in ")
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


def test_what_fails_is_shown_in_full():
    asked = [*INSTALL, "packaging", "no-such-package-of-this-course"]
    done = subprocess.run(asked, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Requirement already satisfied: packaging" in done.stderr
    assert "No matching distribution found for no-such-package-of-this-course" in done.stderr
    assert done.stdout == ""
