"""Tokens are short signed pointers: a secret handle, two small numbers, a time line, a tag (rules 1 to 3).

Agents miscopy long tokens, and nothing that a token says is believed before its tag is checked. Minting
stores nothing.
"""

from __future__ import annotations

import hmac
import os
import zlib
from binascii import a2b_base64, b2a_base64
from collections.abc import Collection, Iterable
from struct import Struct as Layout
from typing import Literal, cast, get_args

from msgspec import Struct

from interlock.ledger.tokens.keyring import Key, Keyring

WordKind = Literal["st", "ack", "chk", "sst", "ses", "trc"]
Kind = Literal["st", "ack", "chk", "sst", "ses", "trc", "nav"]
TokenCode = Literal[
    "TOKEN_INVALID_FORMAT",
    "TOKEN_UNSUPPORTED_VERSION",
    "TOKEN_BAD_SIGNATURE",
    "TOKEN_KEY_RETIRED",
    "TOKEN_SCOPE_MISMATCH",
]
StateCode = Literal["INVALID_FORMAT", "DECODE_FAILED", "DECOMPRESS_FAILED", "VALIDATION_FAILED"]

VERSION = "v1"
STATE_PREFIX = "v1.gzB64."
HANDLE_BYTES = 10
TAG_BYTES = 10
NODE_BYTES = 3  # 47 characters; a whole word more would make them 49
LINE_BYTES = 3
BODY = Layout(f">{HANDLE_BYTES}s{NODE_BYTES}sI{LINE_BYTES}s")
POINTER_BYTES = BODY.size + TAG_BYTES
WORD_LENGTH = -(-POINTER_BYTES * 8 // 6)
GZIP_HEAD = bytes.fromhex("1f8b08000000000000ff")
TO_URL = bytes.maketrans(b"+/", b"-_")
FROM_URL = bytes.maketrans(b"-_", b"+/")
WORD_KINDS: frozenset[str] = frozenset(get_args(WordKind))
OF_NODES: frozenset[Kind] = frozenset(("st", "ack", "chk", "ses", "nav"))

NAMES: dict[Kind, str] = {
    "st": "a state token (st.v1.…)",
    "ack": "an ack token (ack.v1.…)",
    "chk": "a checkpoint token (chk.v1.…)",
    "sst": "a sessionToken (sst.v1.…)",
    "ses": "a session token (ses.v1.…)",
    "trc": "a trace token (trc.v1.…)",
    "nav": f"a navigation state ({STATE_PREFIX}…)",
}


HANDLE_MARK = 1 << 31  # set in the attempt of a checkpoint handle, never in that of a session token


class Pointer(Struct, frozen=True):
    """Where a token leads. `node` is the ordinal of the node it was given at; the handle is a secret.

    `line` begins the digest of the commit that made the node: a log that was set back and went on another way
    has another node of the same number. It is empty where no token names the node, and zero in tokens that
    name none. The `attempt` of a session token is the number of answers of the visit that its bearer has
    seen; that of a checkpoint handle says which opening of which gate it was given for.
    """

    kind: Kind
    handle: bytes
    node: int = 0
    attempt: int = 0
    line: bytes = b""

    @property
    def is_checkpoint_handle(self) -> bool:
        return self.kind == "ses" and self.attempt >= HANDLE_MARK

    def __repr__(self) -> str:
        return f"Pointer({self.kind}, node={self.node}, attempt={self.attempt})"


class TokenError(Struct, frozen=True):
    """Why a token is refused, and what the agent should do."""

    code: TokenCode
    message: str
    next_action: str


class StateError(Struct, frozen=True):
    """Why a navigation state is refused, in the codes of that surface."""

    code: StateCode
    message: str
    next_action: str


def new_handle() -> bytes:
    return os.urandom(HANDLE_BYTES)


def new_attempt() -> int:
    """Draw an attempt that nobody can have used; never 0, which is a node's first (rule 3)."""
    return int.from_bytes(os.urandom(4), "big") or 1


def mint(key: Key, pointer: Pointer) -> str:
    """Sign a pointer. The same pointer and key always give the same token."""
    node = pointer.node.to_bytes(NODE_BYTES, "big")
    body = BODY.pack(pointer.handle, node, pointer.attempt, pointer.line)
    signed = body + _tag(key, pointer.kind, body)
    return _state(signed) if pointer.kind == "nav" else f"{pointer.kind}.{VERSION}.{_word(signed)}"


def read(keyring: Keyring, token: str, expected: Collection[Kind]) -> Pointer | TokenError:
    """Check a token and return where it leads, if it is of an expected kind."""
    token = bare(token)
    pointer: Pointer | TokenError | StateError
    if token.startswith(STATE_PREFIX):
        pointer = read_state(keyring, token)
    else:
        pointer = _read_word(keyring, token, expected)
    if isinstance(pointer, StateError):
        if pointer.code == "VALIDATION_FAILED":
            return _bad_signature()
        return TokenError("TOKEN_INVALID_FORMAT", pointer.message, pointer.next_action)
    if isinstance(pointer, TokenError) or pointer.kind in expected:
        return pointer
    return TokenError(
        "TOKEN_SCOPE_MISMATCH",
        f"The token is valid, but it is {NAMES[pointer.kind]}; {_names_of(expected)} belongs here.",
        f"Send {_names_of(expected)} from the last response.",
    )


def bare(token: str) -> str:
    """Take off what agents copy along with a token: white space, quotes and code marks around it."""
    return token.strip().strip("\"'`").strip()


def read_state(keyring: Keyring, token: str) -> Pointer | StateError:
    """Check navigation's `state`, answering in that surface's codes.

    At most one byte more than a pointer is decompressed, so that no state can fill the memory.
    """
    token = bare(token)
    if not token.startswith(STATE_PREFIX):
        return _state_refused("INVALID_FORMAT", f"Invalid token format. Expected prefix '{STATE_PREFIX}'")
    payload = token.removeprefix(STATE_PREFIX)
    if not payload:
        return _state_refused("DECODE_FAILED", "Empty token payload")
    try:
        packed = a2b_base64(payload, strict_mode=True)
        signed = zlib.decompressobj(wbits=31).decompress(packed, POINTER_BYTES + 1)
    except ValueError:
        return _state_refused("DECODE_FAILED", "Failed to decode payload")
    except zlib.error:
        return _state_refused("DECOMPRESS_FAILED", "Failed to decompress payload")
    if len(signed) != POINTER_BYTES or _state(signed) != token:
        return _state_refused("VALIDATION_FAILED", "State validation failed: payload: not a state of ours")
    retired = _verified(keyring.retired, "nav", signed) is not None
    reason = "its key is retired" if retired else "does not match the state"
    return _verified(keyring.believed(), "nav", signed) or _state_refused(
        "VALIDATION_FAILED", f"State validation failed: signature: {reason}"
    )


def peek(keyring: Keyring, token: str) -> Pointer | None:
    """Read where a session token claims to lead, WITHOUT trusting its tag (adoption, rule 6).

    It must have the exact form of a session token, and be signed with none of our keys: a token of another
    kind that is spelled as one is not adopted.
    """
    token = bare(token)
    word = token.removeprefix(f"ses.{VERSION}.")
    signed = _unword(word) if len(word) == WORD_LENGTH and word != token else None
    if signed is None or _word(signed) != word:
        return None
    keys = (*keyring.believed(), *keyring.retired)
    ours = any(_verified(keys, kind, signed) for kind in get_args(Kind))
    return None if ours else _pointer("ses", signed)


def _read_word(keyring: Keyring, token: str, expected: Collection[Kind]) -> Pointer | TokenError:
    """Read a token that is one word: a kind, a version and a signed pointer."""
    kind, _, rest = token.partition(".")
    version, _, word = rest.partition(".")
    if kind not in WORD_KINDS or not version:
        return _malformed("It begins with no known prefix", expected)
    if version != VERSION:
        return TokenError(
            "TOKEN_UNSUPPORTED_VERSION",
            f"The token has version '{version[:12]}'; this server reads '{VERSION}'.",
            "Use a token that this server gave, or find the session again and take its fresh tokens.",
        )
    if len(word) != WORD_LENGTH:
        return _malformed(f"After the prefix come {WORD_LENGTH} characters; this has {len(word)}", expected)
    signed = _unword(word)
    if signed is None or _word(signed) != word:
        return _bad_signature()
    named = cast(WordKind, kind)
    pointer = _verified(keyring.believed(), named, signed)
    if pointer is None and _verified(keyring.retired, named, signed) is not None:
        return TokenError(
            "TOKEN_KEY_RETIRED",
            "The key that signed this token was retired.",
            "Find the session again and take its fresh tokens.",
        )
    return pointer or _bad_signature()


def _verified(keys: Iterable[Key], kind: Kind, signed: bytes) -> Pointer | None:
    body, tag = signed[: BODY.size], signed[BODY.size :]
    for key in keys:
        if hmac.compare_digest(tag, _tag(key, kind, body)):
            return _pointer(kind, signed)
    return None


def _tag(key: Key, kind: Kind, body: bytes) -> bytes:
    return hmac.digest(key.secret, f"{kind}.{VERSION}.".encode() + body, "sha256")[:TAG_BYTES]


def _pointer(kind: Kind, signed: bytes) -> Pointer:
    handle, node, attempt, line = BODY.unpack(signed[: BODY.size])
    return Pointer(kind, handle, int.from_bytes(node, "big"), attempt, line)


def _word(signed: bytes) -> str:
    return b2a_base64(signed, newline=False).translate(TO_URL).rstrip(b"=").decode()


def _unword(word: str) -> bytes | None:
    try:
        signed = a2b_base64(word.encode("ascii").translate(FROM_URL) + b"=" * (-len(word) % 4))
    except ValueError:
        return None
    return signed if len(signed) == POINTER_BYTES else None


def _state(signed: bytes) -> str:
    size = len(signed)
    stored = b"\x01" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little") + signed
    tail = zlib.crc32(signed).to_bytes(4, "little") + size.to_bytes(4, "little")
    return STATE_PREFIX + b2a_base64(GZIP_HEAD + stored + tail, newline=False).decode()


def _state_refused(code: StateCode, message: str) -> StateError:
    return StateError(code, message, "Send the `state` of the last response, unchanged and whole.")


def _malformed(reason: str, expected: Collection[Kind]) -> TokenError:
    return TokenError(
        "TOKEN_INVALID_FORMAT",
        f"This is not a token. {reason}.",
        f"Send {_names_of(expected)}, exactly as a response gave it.",
    )


def _bad_signature() -> TokenError:
    return TokenError(
        "TOKEN_BAD_SIGNATURE",
        "The token's signature does not match: it was changed in copying, or its key is lost.",
        "Copy the token again from the response that gave it, character by character;"
        " if it is lost, find the session again and take its fresh tokens.",
    )


def _names_of(expected: Collection[Kind]) -> str:
    *others, last = (name for kind, name in NAMES.items() if kind in expected)
    return f"{', '.join(others)} or {last}" if others else last
