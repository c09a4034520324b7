"""Questions as forms: all that an option says is in the list that the user chooses from."""

from __future__ import annotations

from typing import Any, cast

from interlock.core.definition.workflow import Effect, Option
from interlock.core.run.questions import Question
from interlock.surfaces.elicitation import MOST_OF_TITLE, form


def titles(*options: Option) -> list[str]:
    schema = cast("Any", form(Question("design", "Design", "Which design?", options)).schema)
    return [choice["title"] for choice in schema["properties"]["choice"]["oneOf"]]


def test_an_option_is_listed_with_its_description_and_its_effect() -> None:
    queue = Option("queue", "A queue", "One worker.\nSlow, safe.", Effect({"design": "queue"}))
    assert titles(queue, Option("stop", "Stop")) == [
        "A queue: One worker. Slow, safe. (design = queue)",
        "Stop",
    ]


def test_a_long_description_is_cut_and_what_the_option_does_stays() -> None:
    (title,) = titles(Option("queue", "A queue", "慢" * 5000, Effect({"design": "queue"})))
    assert len(title.encode()) <= MOST_OF_TITLE + 2
    assert title.endswith("慢… (design = queue)")
