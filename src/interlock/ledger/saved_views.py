"""Lists of runs that a person has named: a name and the filters, as the address of the list spells them.

They are kept with the owner's settings, not in a browser, which has other ones for each port of the console.
"""

from __future__ import annotations

import msgspec

from interlock.ledger.errors import LedgerError
from interlock.ledger.queries.status import Shown
from interlock.store.protocol import Reader, SettingRow, Store

SETTING = "saved-views"
MOST_VIEWS = 50
LONGEST_NAME = 60
LONGEST_QUERY = 500


class SavedView(Shown, frozen=True):
    """A named list of runs."""

    name: str
    query: str


def saved_views(store: Store, owner: str) -> tuple[SavedView, ...]:
    """Return an owner's views, by name."""
    with store.reading() as reader:
        return stored_views(reader, owner)


def save_view(store: Store, owner: str, view: SavedView) -> None:
    """Keep a view; one of the same name is replaced."""
    name = view.name.strip()
    if not name or len(name) > LONGEST_NAME or len(view.query) > LONGEST_QUERY:
        message = f"A view has a name of at most {LONGEST_NAME} characters."
        raise LedgerError("VALIDATION_ERROR", message, "Choose another name.")
    with store.writing() as writer:
        views = {each.name: each for each in stored_views(writer, owner)} | {
            name: SavedView(name, view.query)
        }
        if len(views) > MOST_VIEWS:
            message = f"There are {MOST_VIEWS} views already."
            raise LedgerError("VALIDATION_ERROR", message, "Remove one first.")
        kept = sorted(views.values(), key=lambda each: each.name.casefold())
        writer.set_setting(SettingRow(owner, SETTING, msgspec.json.encode(kept).decode()))


def remove_view(store: Store, owner: str, name: str) -> None:
    """Remove a view, if there is one of this name."""
    with store.writing() as writer:
        kept = [each for each in stored_views(writer, owner) if each.name != name]
        writer.set_setting(SettingRow(owner, SETTING, msgspec.json.encode(kept).decode()))


def stored_views(reader: Reader, owner: str) -> tuple[SavedView, ...]:
    stored = reader.setting(owner, SETTING)
    return msgspec.json.decode(stored, type=tuple[SavedView, ...]) if stored else ()
