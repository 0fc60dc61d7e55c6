"""The texts of Home Assistant: what is dropped, what is held out, and the counts of the lessons."""

import pytest

from course_lib.data import home_assistant, store
from course_lib.data.home_assistant import normalised, reason_to_drop

texts = pytest.mark.skipif(
    not store.is_fetched("homeassistant"), reason="needs its texts: `course fetch homeassistant`"
)


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("Set {name}", "Setze {name}", "placeholder"),
        ("See https://a.b", "Siehe dort", "address"),
        ("Press **start**", "Start", "markup"),
        ("One\ntwo", "Eins zwei", "markup"),
        ("Status", "Status", "identical"),
        ("House", "Haus", None),
    ],
)
def test_a_pair_that_teaches_no_translation_is_dropped_for_a_reason(source, target, reason):
    assert reason_to_drop(source, target) == reason


def test_texts_are_the_same_whatever_their_case_marks_and_spaces():
    assert normalised("  Invalid  API-key. ") == normalised("invalid api key") == "invalid api key"


def test_leaves_keep_their_path_and_drop_what_is_no_text(monkeypatch):
    files = {
        f"homeassistant/components/{name}/translations/en.json": content
        for name, content in {"b": b'{"x": {"y": "deep"}, "n": 3}', "a": b'{"z": "flat"}'}.items()
    }
    monkeypatch.setattr(store, "read_matching", lambda item, pattern: files)
    assert home_assistant.strings.__wrapped__("en") == {"a/z": "flat", "b/x/y": "deep"}


@texts
def test_an_unknown_language_is_named():
    with pytest.raises(ValueError, match="has no language 'xx': expected a code such as de"):
        home_assistant.strings("xx")


@texts
def test_the_texts_have_the_counts_that_the_lessons_cite():
    assert len(home_assistant.strings("en")) == 44_434
    counts = {language: len(home_assistant.pairs(language)) for language in ("de", "pt")}
    assert counts == {"de": 21_391, "pt": 21_580}
    assert dict(home_assistant.pairs("de"))["Unexpected error"] == "Unerwarteter Fehler"


@texts
@pytest.mark.parametrize("language", ["de", "pt"])
def test_no_side_of_a_held_out_pair_is_in_another_part(language):
    parts = home_assistant.split(language)
    assert [len(part) for part in parts[1:]] == [300, 500]
    for side in (0, 1):
        learning, tuning, held_out = ({normalised(pair[side]) for pair in part} for part in parts)
        assert not learning & (tuning | held_out)
        assert not tuning & held_out
    assert set().union(*parts) <= set(home_assistant.pairs(language))


@texts
def test_held_out_pairs_have_3_to_25_english_words():
    for part in home_assistant.split("de")[1:]:
        assert {len(source.split()) for source, _ in part} <= set(range(3, 26))
