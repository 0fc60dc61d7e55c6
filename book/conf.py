"""What Sphinx is told: which extensions, which theme, and that nothing comes from elsewhere."""

import os
import re

from course_lib import __version__
from course_lib.files.paths import ROOT

project = "The Transformer, step by step"
release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton", "book.rendering"]
copybutton_selector = "div:not(.output) > .highlight > pre"  # code, not what it prints

# lessons are committed as they ran
nb_execution_mode = "off"
nb_merge_streams, nb_render_markdown_format = True, "myst"
nb_code_prompt_show, nb_code_prompt_hide = "Show the code", "Hide the code"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors, myst_heading_slug_func = 3, "book.rendering.anchor"
smartquotes = False

# a docstring writes code in single backquotes, and shapes in its signature
default_role = "literal"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
maximum_signature_line_length = 80

html_theme = "furo"
html_title = project
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["book.css", "live/live.css"]
html_js_files = ["book.js", ("live/page.js", {"type": "module"})]
html_favicon = "static/favicon.svg"
templates_path = ["templates"]
html_additional_pages = {
    "search": "search.html"
}  # pagefind's, which shows the words in their place
html_copy_source = False  # the sources of the pages are the notebooks
html_show_copyright = False
released = re.search(r"date-released: (.+)", (ROOT / "CITATION.cff").read_text("utf8"))
html_last_updated_fmt = f"{released[1] if released else ''}, version {release}"
html_baseurl = os.environ.get("BOOK_URL", "")  # where it is published: links show its picture
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"
