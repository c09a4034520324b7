"""Where a run has been carried beside its agent's own moves, so that a navigation state stays good for it."""

from __future__ import annotations

from interlock.store.protocol import Reader


def onward(reader: Reader, session_id: str, node: int) -> int:
    """The node that kept variables, a child's return or the user have led to; forks of the agent are none."""
    while True:
        children = [one.node for one in reader.children(session_id, node) if one.kind == "step"]
        own = {one.child for one in reader.attempts(session_id, node)} if children else set()
        beside = [child for child in children if child not in own]
        if not beside:
            return node
        node = beside[-1]
