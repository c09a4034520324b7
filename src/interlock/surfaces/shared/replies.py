"""Answers of session and gated: text first, the token once in it and once in `_meta` (rules 18, 40, 41)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from interlock.core.run.outcomes import Refusal
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.surfaces.call import Reply
from interlock.surfaces.refusals import Words, fields
from interlock.surfaces.shared.session_errors import recovery

_encode = msgspec.json.Encoder().encode
_SLOT = re.compile(r"\\u0000([a-z]+:\d+:\d+)\\u0000")


def text_reply(
    text: str, token: str | None, warnings: Sequence[str] = (), meta: Mapping[str, Json] | None = None
) -> Reply:
    """Reply with a text, the token to go on with, and the warnings about the call."""
    tokens: dict[str, Json] = {"session_token": token} if token else {}
    validation: dict[str, Json] = {"status": "warning" if warnings else "valid", "warnings": list(warnings)}
    return Reply(text, meta={**tokens, **(meta or {}), "validation": validation})


def json_reply(
    body: Mapping[str, Json],
    token: str | None,
    warnings: Sequence[str] = (),
    meta: Mapping[str, Json] | None = None,
) -> Reply:
    """Reply with a JSON object as the text; a model sees nothing else, so the warnings are in it."""
    warned: dict[str, Json] = {"warnings": list(warnings)} if warnings else {}
    return text_reply(as_json({**body, **warned}), token, warnings, meta)


def as_json(body: Json) -> str:
    """JSON as text; its slots for tokens stay slots when the text is encoded once more."""
    return _SLOT.sub(lambda match: f"\0{match[1]}\0", _encode(body).decode())


def failure(
    code: str,
    message: str,
    next_action: str,
    about: Mapping[str, Json] | None = None,
    token: str | None = None,
) -> Reply:
    """Say what is wrong and what to do next, in the text and as fields."""
    body: dict[str, Json] = {"code": code, "message": message, "next": next_action, **(about or {})}
    lines = [message, f"Next: {next_action}"] + ([f"session_token: {token}"] if token else [])
    meta: dict[str, Json] = {"validation": {"status": "error", "warnings": []}}
    return Reply("\n".join(lines), body, {**meta, "session_token": token} if token else meta, is_error=True)


def of_error(error: LedgerError) -> Reply:
    """Answer an error of the ledger."""
    about: dict[str, Json] = {**error.details}
    if error.after_ms is not None:
        about["retry_after_ms"] = error.after_ms
    return failure(error.code, error.message, recovery(error), about)


def of_refusal(refusal: Refusal, words: Words, token: str | None) -> Reply:
    """Answer a refusal in the words of the surface, its data as fields."""
    return failure(refusal.code.value, words.message, words.next_action, fields(refusal), token)
