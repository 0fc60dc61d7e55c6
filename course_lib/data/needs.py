"""Sections of a notebook that need data: it is fetched, or they are skipped, and say so."""

from IPython import get_ipython

from course_lib.data import store
from course_lib.files.workspace import Workspace


def needs(*names: str) -> None:
    """Begin a section that needs these items; `needs()` begins one that needs none.

    In a notebook of a workspace what is missing is fetched. While one of them is missing, each
    cell up to the next `needs` is replaced by a sentence with the command that fetches it. Outside
    of notebooks a missing item raises `NotFetched`.
    """
    if get_ipython() and Workspace.find():
        try:
            store.fetch([name for name in names if not store.is_fetched(name)])
        except store.FetchError as failure:
            print(failure)
    missing = " ".join(name for name in names if not store.is_fetched(name))
    message = f"Skipped: this section needs {missing}; `course fetch {missing}` brings it."
    shell = get_ipython()
    if shell is None:
        if missing:
            raise store.NotFetched(message)
        return
    transforms = shell.input_transformers_cleanup
    transforms[:] = [transform for transform in transforms if not isinstance(transform, _Skip)]
    if missing:
        print(message)
        transforms.append(_Skip())


class _Skip:
    """Replaces each cell, until one calls `needs`."""

    def __call__(self, lines: list[str]) -> list[str]:
        if any(line.startswith("needs(") for line in lines):
            return lines
        return ["print('Skipped, see above.')\n"]
