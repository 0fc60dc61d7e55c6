"""Build the site in build/book, and check it: `python -m book`."""

import shutil
import sys

from sphinx.cmd.build import main as sphinx

from book import pages
from course_lib.files.paths import ROOT

PAGES, SITE = ROOT / "build" / "pages", ROOT / "build" / "book"

if __name__ == "__main__":
    pages.write(PAGES)
    shutil.rmtree(SITE, ignore_errors=True)
    # warnings are errors, all of them told
    code = sphinx(["-qEW", "--keep-going", "-c", str(pages.HERE), str(PAGES), str(SITE)])
    sys.exit(code)
