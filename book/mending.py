"""What axe-core finds wrong in the pages that Sphinx and Furo write, mended in place.

Sphinx's HTML writer and Furo's page template write it. A copy of either would be longer, and miss
what a release changes; here, what is found on no page of a site fails its build: a release has
mended it, and its row goes, or writes it otherwise, and its pattern follows.
"""

import re
from collections.abc import Callable
from pathlib import Path

MENDED: dict[str, str | Callable[[re.Match], str]] = {
    # two landmarks of one kind need names
    r'<aside class="sidebar-drawer"': r'\g<0> aria-label="The book"',
    r'<aside class="toc-drawer[^"]*"': r'\g<0> aria-label="This page"',
    # the title of a part of the table of contents is a heading, and does not say of which level
    r'<p class="caption" role="heading"': r'\g<0> aria-level="2"',
    # the head of a column without a name is an empty cell
    r'<th class="head[^>]*>(?:<p></p>)?</th>': "<td></td>",
    # axe takes a head that is a formula alone for an empty one
    r'(<th class="head[^>]*><p><math)>(.*?)(?=</math></p></th>)': lambda found: (
        f'{found[1]} aria-label="{re.sub("<[^>]+>", "", found[2])}">{found[2]}'
    ),
    # the parameters of a long signature are a list of descriptions of nothing
    r'<dl>\n(?=<dd><em class="sig-param">)': '<div class="parameters">\n',
    r'<dd>(<em class="sig-param">.*?</em>,?)</dd>': r"<div>\1</div>",
    r'(<div><em class="sig-param">.*</div>\n)</dl>': r"\1</div>",
}


def mend(site: Path, address: str = "") -> list[str]:
    """Mend all pages of a site, and list the patterns that were found on none.

    The page of wrong addresses is shown at any of them.
    """
    unseen = list(MENDED)
    for page in site.rglob("*.html"):
        text = page.read_text("utf8")
        for found, better in MENDED.items():
            text, times = re.subn(found, better, text)
            if times and found in unseen:
                unseen.remove(found)
        if page == site / "404.html":
            base = f'<head><base href="{address or "/"}">'
            text = text.replace("<head>", base).replace('href="#', 'href="404.html#')
        page.write_text(text, "utf8")
    return unseen
