"""The notes of an artifact: written, read, and refused where they are wrong."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtf.serialization import ArtifactError
from jaxtf.serialization._artifact.notes import FunctionNotes, Notes

texts = st.lists(st.text(max_size=5), max_size=3).map(tuple)
positions = st.lists(st.integers(0, 9), max_size=3).map(tuple)
named = st.lists(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=2).map(tuple), max_size=3)
functions = st.builds(
    FunctionNotes, st.text(), st.booleans(), texts, texts, positions, positions, texts, named.map(tuple)
)
notes = st.builds(
    Notes, texts, st.dictionaries(st.text(), st.text(), max_size=2), st.lists(functions, max_size=3).map(tuple)
)


@given(notes)
def test_notes_survive_json(notes):
    assert Notes.parse(json.loads(json.dumps(notes.to_json()))) == notes


@given(notes, st.dictionaries(st.text(), st.integers()))
def test_unknown_keys_are_ignored(notes, more):
    values = notes.to_json()
    assert Notes.parse({**more, **values}) == notes


VALID = Notes(("a >= 2",), {"jax": "0.12"}, (FunctionNotes("1.13.7", True, ("args[0]",), ("result",), (0,)),)).to_json()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"functions": None}, "wrong notes['functions']: expected a list, found None"),
        ({"functions": [3]}, "wrong notes['functions']: expected an object, found 3"),
        ({"functions": [{}]}, "lack functions[0]['stablehlo_version']"),
        ({"constraints": "a"}, "wrong notes['constraints']: expected a list, found 'a'"),
        ({"constraints": [1]}, "wrong notes['constraints']: expected a text, found 1"),
        ({"producer": {"jax": 1}}, "wrong notes['producer']: expected a text, found 1"),
        (
            {"functions": [{**VALID["functions"][0], "uses_shardy": 1}]},
            "['uses_shardy']: expected true or false, found 1",
        ),
        ({"functions": [{**VALID["functions"][0], "weak_results": [-1]}]}, "expected a position, found -1"),
        ({"functions": [{**VALID["functions"][0], "weak_results": [True]}]}, "expected a position, found True"),
        (
            {"functions": [{**VALID["functions"][0], "static_fields": [[["k"]]]}]},
            "['static_fields']: expected a name and a text, found ['k']",
        ),
        ({"functions": [{**VALID["functions"][0], "static_fields": [[["k", 3]]]}]}, "expected a text, found 3"),
    ],
)
def test_wrong_notes_are_refused_by_name(change, text):
    with pytest.raises(ArtifactError) as caught:
        Notes.parse({**VALID, **change})
    assert text in str(caught.value)


def test_notes_without_functions_are_refused():
    with pytest.raises(ArtifactError, match=r"lack notes\['functions'\]"):
        Notes.parse({})
