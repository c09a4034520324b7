"""What a session is found by: its title and goal, its newest notes and previews, its workflows."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import normalize

import msgspec

from interlock.core.definition.program import Plan
from interlock.core.run.output import Output, within_budget
from interlock.core.run.state import RunState
from interlock.core.values import Variables, cut
from interlock.store.protocol import SearchRow, SessionRow

PREVIEW = 2048
MARK = "wf"
NAMES = ("title", "goal", "ticketId")

_encode = msgspec.json.Encoder().encode


def search_row(
    session: SessionRow, plans: Sequence[Plan], state: RunState | None, output: Output
) -> SearchRow:
    """The session's row as its newest output makes it."""
    title = " ".join(dict.fromkeys([session.title, *(named(state.variables) if state else ())]))
    kept = within_budget(output)
    previews = (cut(_encode(one).decode(), PREVIEW, "") for one in kept.artifacts)
    notes = " ".join((kept.notes, *previews)).strip()
    return SearchRow(session.session_id, _folded(title), _folded(notes), workflow_words(plans))


def _folded(text: str) -> str:
    """One form for what looks the same, so that a query finds it however it is typed."""
    return normalize("NFKC", text)


def workflow_words(plans: Sequence[Plan]) -> str:
    """The words of ids, names and tags."""
    each = (word for plan in plans for word in (plan.workflow.id, plan.workflow.name, *plan.workflow.tags))
    return " ".join(dict.fromkeys(word for text in each for word in marked(text)))


def marked(text: str) -> list[str]:
    """Words marked as a workflow's: all sessions share them, so no search of notes must meet them."""
    letters = "".join(char if char.isalnum() else " " for char in _folded(text).lower())
    return [MARK + word for word in letters.split()]


def named(context: Variables) -> list[str]:
    """What the context calls the work, best first (rule 42)."""
    given = (context.get(key) for key in NAMES)
    return [value[:200] for value in given if isinstance(value, str) and value.strip()]
