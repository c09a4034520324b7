"""The words of a command: what is run, and what a person who trusts it reads."""

from __future__ import annotations

import shlex

from interlock.core.definition.quoting import spelled


def arguments_of(run: str) -> tuple[str, ...]:
    """Split a command as a shell would, without being one; one that cannot be split has no words."""
    try:
        return tuple(shlex.split(run))
    except ValueError:
        return ()


def words_of(run: str) -> str:
    """Write the words of a command so that nothing in them hides."""
    return spelled(shlex.join(arguments_of(run)))
