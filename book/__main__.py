"""Build the site in build/book: `python -m book`. `make book` then holds its laws as well.

`python -m book 02 13` is a draft, in a minute: the first page, and these lessons.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urljoin

import nbformat
from sphinx.cmd.build import main as sphinx

from book import live, mending, pages, slides
from course_lib.files import course_map
from course_lib.files.paths import ROOT

PAGES, SITE = ROOT / "build" / "pages", ROOT / "build" / "book"
HIDDEN = "details.hide, details.solution, details.wrong, .live, .headerlink, svg"  # from the search


def search_index(site: Path) -> None:
    """Let pagefind write the index of the search, in parts of some kilobytes."""
    command = [sys.executable, "-m", "pagefind", "--site", str(site), "--silent"]
    command += ["--root-selector", "article", "--exclude-selectors", HIDDEN]
    subprocess.run(command, check=True)


def site_map(site: Path, address: str) -> None:
    """Name all pages to search engines, where the site has an address."""
    found = sorted(x.relative_to(site).as_posix() for x in site.rglob("*.html"))
    lines = [urljoin(address, x) for x in found if x not in ("404.html", "search.html")]
    (site / "sitemap.txt").write_text("\n".join(lines) + "\n", "utf8")
    (site / "robots.txt").write_text(f"Sitemap: {urljoin(address, 'sitemap.txt')}\n", "utf8")


def main(only: list[str]) -> int:
    """Build all pages, or a draft of some; return Sphinx's status."""
    shutil.rmtree(SITE, ignore_errors=True)
    pages.write(PAGES, only)
    # warnings are errors, all of them told; what Sphinx would keep for the next time is not kept
    strict = ["-Q"] if only else ["-qW", "--keep-going"]
    failed = sphinx([*strict, "-E", "-c", str(pages.HERE), str(PAGES), str(SITE)])
    shutil.rmtree(SITE / ".doctrees", ignore_errors=True)
    live.write(SITE / "_static" / "live" / "data")
    slides.put_reveal(SITE / "_static" / "reveal")
    for lesson in course_map.lessons():
        notebook = nbformat.read(pages.NOTEBOOKS / lesson.notebook, as_version=4)
        slides.write(SITE / "slides", lesson, notebook)
    address = os.environ.get("BOOK_URL", "")
    unseen = mending.mend(SITE, address)
    if unseen and not only:  # a draft has not all that is mended
        sys.exit(f"book/mending.py mends what no page has any more: {unseen}")
    search_index(SITE)
    if address:
        site_map(SITE, address)
    if pages.XRAYS.is_dir():
        shutil.copytree(pages.XRAYS, SITE / "xray")
    print(f"The site is in {SITE}. To see all of it: python -m http.server -d {SITE}")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
