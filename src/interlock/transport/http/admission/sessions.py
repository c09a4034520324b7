"""How many MCP sessions one principal may have open, so that others can open theirs.

Many clients never end a session. The SDK ends an idle one after half an hour, and until then it costs memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from interlock.core.principals import Principal

MOST_SESSIONS = 500


class OpenSessions:
    """The sessions of each principal with their versions of the protocol, in the order of their last use."""

    def __init__(self) -> None:
        self._of: dict[Principal, dict[str, str]] = {}
        self._requests: Counter[str] = Counter()

    def surplus(self, principal: Principal) -> str | None:
        """Take out the session to end before another one is opened: the one that is unused for longest."""
        own = self._of.get(principal, {})
        idle = (session_id for session_id in own if not self._requests[session_id])
        longest = next(idle, None) if len(own) >= MOST_SESSIONS else None
        if longest is not None:
            del own[longest]
        return longest

    def add(self, principal: Principal, session_id: str, version: str) -> None:
        """Add a session that was opened, with the version that its client asked for."""
        self._of.setdefault(principal, {})[session_id] = version

    def version(self, principal: Principal, session_id: str) -> str | None:
        """Return the version that the client of a session asked for; None if the session is not known."""
        return self._of.get(principal, {}).get(session_id)

    @contextmanager
    def used(self, principal: Principal, session_id: str) -> Iterator[None]:
        """Count a session as used as long as one of its requests is open."""
        self._requests[session_id] += 1
        try:
            yield
        finally:
            self._requests[session_id] -= 1
            if not self._requests[session_id]:
                del self._requests[session_id]
            own = self._of.get(principal, {})
            if session_id in own:
                own[session_id] = own.pop(session_id)

    def remove(self, principal: Principal, session_id: str) -> None:
        """Forget a session that has ended."""
        self._of.get(principal, {}).pop(session_id, None)
