"""Events and spans for other systems, from a position on; each event with the digest of its commit.

The position of an event is its number in its session. Whoever keeps the last one that arrived asks for what
came after it; a line that comes twice has the same session and number.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from interlock.core.values import Json
from interlock.ledger.decisions.recorded import imported_up_to
from interlock.ledger.evidence.spans import otlp, spans_of
from interlock.ledger.log.chain import logged
from interlock.ledger.log.health import Trusted, trusted
from interlock.ledger.queries.log_lines import event_line
from interlock.store.protocol import Store


class StreamedLog(Struct, frozen=True):
    """A session's log as far as its chain holds; `imported` is the last event that came from a bundle."""

    session_id: str
    log: Trusted
    imported: int

    @property
    def position(self) -> int:
        """The last event that can be exported."""
        return self.log.report.events - 1

    def events_after(self, position: int) -> Iterator[dict[str, Json]]:
        """Yield each event after a position, with the digest that anchors it."""
        for commit in self.log.commits:
            for row in logged((commit,)) if commit.last > position else ():
                if row.index > position:
                    line = event_line(row, self.imported).fields()
                    yield {"sessionId": self.session_id, **line, "digest": commit.digest.hex()}

    def spans_after(self, position: int) -> Iterator[dict[str, Json]]:
        """Yield what ended after a position, as one request of OTLP."""
        ended = [span for span in spans_of(self.log.commits) if span.ended > position]
        if ended:
            yield otlp(self.session_id, ended)


def streamed_log(store: Store, session_id: str) -> StreamedLog | None:
    """Read a session's log; None if it was removed meanwhile."""
    with store.reading() as reader:
        session = reader.session(session_id)
        if session is None:
            return None
        return StreamedLog(session_id, trusted(reader, session), imported_up_to(reader, session_id))
