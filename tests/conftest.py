import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook


@pytest.fixture(autouse=True)
def _own_signatures(tmp_path_factory, monkeypatch):
    """Keep what a test signs out of the signatures that the user's own Jupyter trusts."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path_factory.getbasetemp() / "jupyter"))


@pytest.fixture
def save_notebook():
    """Save a notebook of code cells; a pair (id, source) is the cell of that exercise."""

    def save(path, *cells, lesson=None):
        notebook = new_notebook(cells=[new_markdown_cell("# A lesson", id="title")])
        for number, cell in enumerate(cells):
            id, source = cell if isinstance(cell, tuple) else (None, cell)
            metadata = {"exercise": id} if id else {}
            notebook.cells.append(new_code_cell(source, id=f"cell-{number}", metadata=metadata))
        if lesson:
            notebook.metadata["course"] = {"lesson": lesson, "title": "A lesson"}
        nbformat.write(notebook, path)
        return path

    return save
