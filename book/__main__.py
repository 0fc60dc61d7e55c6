"""Build the site in build/book: `python -m book`. `make book` then holds its laws as well."""

import shutil
import sys

from sphinx.cmd.build import main as sphinx

from book import mending, pages
from course_lib.files.paths import ROOT

PAGES, SITE = ROOT / "build" / "pages", ROOT / "build" / "book"

if __name__ == "__main__":
    shutil.rmtree(SITE, ignore_errors=True)
    pages.write(PAGES)
    # warnings are errors, all of them told; what Sphinx would keep for the next time is not kept
    failed = sphinx(["-qEW", "--keep-going", "-c", str(pages.HERE), str(PAGES), str(SITE)])
    shutil.rmtree(SITE / ".doctrees", ignore_errors=True)
    mending.mend(SITE)
    if pages.XRAYS.is_dir():
        shutil.copytree(pages.XRAYS, SITE / "xray")
    sys.exit(failed)
