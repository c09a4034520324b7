"""Prompts (rule 32): which spellings of a variable are filled into the text of a file."""

from __future__ import annotations

import pytest

from interlock.core.definition.conditions import Scope
from interlock.core.definition.prompts import filled, filled_value, filling

SCOPE = Scope({"a": "one", "b": {"c": 2}}, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [("{a}", "one"), ("{{a}}", "one"), ("{{ b.c }}", "2"), ("{b.c}{a}", "2one"), ("x{{a}}{a}y", "xoneoney"),
     ("${a}", "${a}"), ("{{a}", "{{a}"), ("{a}}", "{a}}"), ("{{{a}}}", "{one}"), ("{ a }", "{ a }"),
     ("$", "$"), ("${{a}}", "$one"), ("{unset} {{unset}}", "{unset} {{unset}}")],
)  # fmt: skip
def test_rule_32_a_variable_is_filled_in_where_it_stands_in_braces_of_its_own(
    text: str, expected: str
) -> None:
    assert filled(text, SCOPE) == expected


def test_the_values_of_a_text_are_named_once() -> None:
    assert list(filling("{a} {{a}} {b.c} {unset}", SCOPE)) == [("a", "one"), ("b.c", "2")]


def test_a_variable_is_filled_into_every_text_of_a_value() -> None:
    value = {"list": ["{a}", ["{b.c}"]], "number": 3, "text": "{a}"}
    assert filled_value(value, SCOPE) == {"list": ["one", ["2"]], "number": 3, "text": "one"}
