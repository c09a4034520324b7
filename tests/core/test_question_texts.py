"""Texts of questions (rule 32): a value from an agent is seen as one, and changes nothing around it."""

from __future__ import annotations

from unicodedata import category

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.core.definition.conditions import Scope
from interlock.core.definition.prompts import (
    effect_text,
    interpolate,
    question_text,
    rendered_option,
)
from interlock.core.definition.quoting import MOST_OF_VALUE, MOST_OF_VALUES
from interlock.core.definition.workflow import Effect, Option

AUTHORED = "Deploy {{a}}?\n\nSince: {{b.c}}\n{{a}}"
SCREEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
HOSTILE = "staging\x1b[2J\x1b]0;owned\x07 \u202egnigats\u2066 \u200b\r\n\x85\u2028yes  Yes"
BLANK = "\u00a0\u00ad\u034f\u1160\u17b4\u180b\u200b\u202f\u2065\u2800\u3000\u3164\ufe00\ufe0f\uffa0\U000e0100"
TEXTS = st.text(st.characters() | st.sampled_from("«»\n\r\t\x1b\x85\u2028\u200b\u202e\u0301\u3164"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)


def shown(value: object, text: str = "Deploy to {{a}}?") -> str:
    return question_text(text, Scope({"a": value}, {}))  # type: ignore[dict-item]


@given(VALUES, VALUES)
@example(HOSTILE, "x" * 160_000)
@example("\n" * 5000, ["\n "] * 5000)
@example(10**300, "9" * 400)
def test_whatever_an_agent_sends_the_author_s_lines_stay_as_they_are(first: object, second: object) -> None:
    text = question_text(AUTHORED, Scope({"a": first, "b": {"c": second}}, {}))  # type: ignore[dict-item]
    lines = text.splitlines()
    assert len(lines) == len(AUTHORED.splitlines())
    assert lines[0].startswith("Deploy ")
    assert lines[0].endswith("?")
    assert lines[2].startswith("Since: ")
    assert not [char for char in text if category(char) in SCREEN and char != "\n"]
    assert text.count("«") == text.count("»") <= 3
    assert len(text) < len(AUTHORED) + 3 * MOST_OF_VALUES


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("staging", "Deploy to «staging»?"),
        ("staging? (already approved by Ann)", "Deploy to «staging? (already approved by Ann)»?"),
        ("a» Approved by Ann. «b", "Deploy to «a› Approved by Ann. ‹b»?"),
        ("a\r\n\n\tb", "Deploy to «a ⏎ b»?"),
        ("a" + " " * 90 + "b", "Deploy to «a b»?"),
        ("pro\u200bduction\x1b[2J", "Deploy to «pro�duction�[2J»?"),
        ("e" + "\u0301" * 400, "Deploy to «e\u0301\u0301\u0301»?"),
        (["a", "b"], 'Deploy to «["a","b"]»?'),
        ("", "Deploy to «»?"),
        *((f"a{blank}b", "Deploy to «a�b»?") for blank in BLANK),
        *((blank, "Deploy to «�»?") for blank in BLANK),
    ],
)
def test_a_value_is_marked(value: object, line: str) -> None:
    assert shown(value) == line


@pytest.mark.parametrize("value", [7, -0.5, True, "2.4.0", "2026-11-17", "12:30"])
def test_what_can_only_be_a_value_stays_bare(value: object) -> None:
    assert shown(value) == f"Deploy to {interpolate('{{a}}', Scope({'a': value}, {}))}?"  # type: ignore[dict-item]


def test_a_long_value_says_how_much_is_cut() -> None:
    assert shown("x" * 160_000) == f"Deploy to «{'x' * MOST_OF_VALUE}…» (159,000 more characters)?"


def test_many_long_values_leave_room_for_the_author_s_last_word() -> None:
    text = shown("x" * 160_000, "{{a}} " * 40 + "and delete the rest?")
    assert len(text) < 2 * MOST_OF_VALUES
    assert text.endswith("and delete the rest?")


def test_an_option_shows_marked_values_and_stores_the_real_ones() -> None:
    option = Option("go", "To {{a}}", "On {{a}}", Effect({"target": "{{a}}", "sure": "yes"}))
    real = "x; goes to ship\x1b"
    rendered = rendered_option(option, Scope({"a": real}, {}))
    assert (rendered.label, rendered.description) == ("To «x; goes to ship�»", "On «x; goes to ship�»")
    assert rendered.effect.set_variables == {"target": real, "sure": "yes"}
    assert effect_text(rendered.effect) == "target = «x; goes to ship�»; sure = yes"


def test_a_prompt_for_the_agent_has_the_value_as_it_is() -> None:
    assert interpolate("Deploy to {{a}}.", Scope({"a": HOSTILE}, {})) == f"Deploy to {HOSTILE}."
