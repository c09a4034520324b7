"""Where there is a quick and a full implementation, they agree."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.text.formats import parse_text
from interlock.authoring.text.locations import Parsed
from interlock.authoring.text.yaml_plain import Irregular, read_plain
from interlock.authoring.text.yaml_text import read_yaml
from interlock.authoring.text.yaml_writer import as_yaml
from interlock.core.definition.conditions import Compare
from interlock.core.definition.workflow import Effect, Gate, Option, Step
from interlock.core.hashing import canonical, digest_of, workflow_hash
from interlock.core.values import Json
from support.story import one_activity

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(text, values, max_size=4), text)
@example({"a": 1.0}, "")
@example({"b": 1e30, "\U0001f600": 1, "\ufb33": 2}, "x")
@example({"n": 9_007_199_254_740_991}, "\x7f\u2028\x00\x1f\b")
def test_a_workflow_is_known_by_its_canonical_json(variables: dict[str, Json], words: str) -> None:
    effect = Effect(variables, words or None)
    gate = Gate("g", words, words, (Option("o", words, effect=effect),), Compare(words, "==", variables))
    workflow = one_activity(Step("s", words), gate, extra=variables)
    assert workflow_hash(workflow) == digest_of(canonical(msgspec.to_builtins(workflow)))


@given(values)
def test_both_yaml_readers_read_plain_yaml_the_same(value: Json) -> None:
    source = as_yaml({"it": value})
    full = read_yaml("x.yaml", source.replace("it:", "it: &a", 1), Report())
    assert isinstance(full, Parsed)
    assert msgspec.json.encode(read_plain(source)) == msgspec.json.encode(full.value)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "# nothing",
        "a: &x 1",
        "a: *x",
        "!!int 1",
        "a: 1\na: 2",
        "<<: {}",
        "? [a]\n: 1",
        "a\n---\nb",
        "a: [",
    ],
)
def test_what_is_not_plain_is_left_to_the_full_reader(source: str) -> None:
    with pytest.raises(Irregular):
        read_plain(source)


def test_locations_are_found_when_they_are_needed() -> None:
    read = parse_text("x.yaml", "a:\n  - b\n  - {c: d}\n", "yaml", Report())
    assert read is not None
    location = read.locations.values["a", 1, "c"]
    assert (location.line, location.column) == (3, 9)
