"""Where the course is published, by one setting of pyproject.toml, and the links that open it."""

import tomllib
from urllib.parse import quote

from course_lib.files.paths import ROOT, source

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
REPOSITORY: str = PROJECT.get("urls", {}).get("Repository", "")  # "" is: not yet
HOST, _, REF = REPOSITORY.partition("/tree/")
NAME = HOST.removeprefix("https://github.com/")
SOURCE = source(REPOSITORY)
PICTURES = {
    "Colab": "https://colab.research.google.com/assets/colab-badge.svg",
    "Kaggle": "https://kaggle.com/static/images/open-in-kaggle.svg",
    "Binder": "https://mybinder.org/badge_logo.svg",
    "Codespaces": "https://github.com/codespaces/badge.svg",
}


def links(notebook: str) -> dict[str, str]:
    """Return the addresses that open a notebook, or the whole course, by where they open it.

    The path is the notebook's in a folder of notebooks. Binder has a workspace, as `course learn`
    makes it. There are none where the course is not published yet.
    """
    if not NAME:
        return {}
    file = f"{NAME}/blob/{REF}/notebooks/{notebook}"
    path = quote(f"workspace/{notebook}", safe="")
    return {
        "Colab": f"https://colab.research.google.com/github/{file}",
        "Kaggle": f"https://kaggle.com/kernels/welcome?src=https://github.com/{file}",
        "Binder": f"https://mybinder.org/v2/gh/{NAME}/{REF}?labpath={path}",
        "Codespaces": f"https://codespaces.new/{NAME}/tree/{REF}",
    }


def badges(notebook: str) -> str:
    """Return the same as a line of Markdown, each with the picture by which it is known."""
    there = links(notebook).items()
    return " ".join(f"[![Open in {where}]({PICTURES[where]})]({to})" for where, to in there)
