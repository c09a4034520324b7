"""How rows are written in the file: long JSON compressed, traces (no digest covers them) with a checksum.

Damage is told by digests, not here: bytes that cannot be read come back as they are.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from interlock.store.protocol import BlockedRow, NodeRow, SessionRow, TraceRow

COMPRESS_OVER = 256
WINDOW_BITS = 13  # small, so that little memory is set up for a response of a few kilobytes


def session_row(*columns: Any) -> SessionRow:
    """Return a session whose keep mark is a truth value again."""
    return SessionRow(*(*columns[:-1], bool(columns[-1])))


def node_row(*columns: Any) -> NodeRow:
    """Return a node with its state and its response."""
    node = NodeRow(*columns)
    return replace(node, state=inflated(node.state), response=inflated(node.response))


def blocked_row(*columns: Any) -> BlockedRow:
    """Return a blocked attempt with its response."""
    row = BlockedRow(*columns)
    return replace(row, response=inflated(row.response)) if row.response else row


DECODERS: Mapping[object, Callable[..., Any]] = {
    SessionRow: session_row,
    NodeRow: node_row,
    BlockedRow: blocked_row,
}


def stored_row(row: Struct) -> Struct:
    """Return a row as it is written."""
    match row:
        case NodeRow():
            return replace(row, state=deflated(row.state), response=deflated(row.response))
        case BlockedRow():
            return replace(row, response=deflated(row.response))
        case TraceRow():
            return replace(row, body=summed(row.body))
        case _:
            return row


def stored_content(body: bytes) -> tuple[bool, bytes]:
    """Return whether a body is compressed, and what is stored of it; content may be any bytes."""
    small = zlib.compress(body) if len(body) > COMPRESS_OVER else body
    return (True, small) if len(small) < len(body) else (False, body)


def content_body(is_deflated: int, body: bytes) -> bytes:
    """Return the body that was stored."""
    return inflated(body) if is_deflated else body


def summed(body: bytes) -> bytes:
    """Return a trace with its checksum before it; a damaged one is left out."""
    return zlib.crc32(body).to_bytes(4, "big") + body


def deflated(body: bytes) -> bytes:
    """Compress JSON that is long; what is compressed begins with neither bracket nor brace."""
    if len(body) <= COMPRESS_OVER:
        return body
    deflating = zlib.compressobj(1, wbits=WINDOW_BITS, memLevel=WINDOW_BITS - 7)
    return deflating.compress(body) + deflating.flush()


def inflated(body: bytes) -> bytes:
    """Undo the compression; damaged bytes come back as they are, and fail their digest."""
    if not isinstance(body, bytes) or body[:1] in (b"", b"{", b"["):  # it was short
        return body
    try:
        return zlib.decompress(body)
    except zlib.error:
        return body
