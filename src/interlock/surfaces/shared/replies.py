"""Answers of session and gated: text first, the token once in it and once in `_meta` (rules 18, 40, 41)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from interlock.core.run.notices import NO_NOTICES, Notices
from interlock.core.run.outcomes import Code, Refusal
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.surfaces.call import Reply
from interlock.surfaces.refusals import Words, fields
from interlock.surfaces.shared.session_errors import recovery

_encode = msgspec.json.Encoder().encode
_SLOT = re.compile(r"\\u0000([a-z]+:\d+:\d+)\\u0000")


def text_reply(
    text: str, token: str | None, notices: Notices = NO_NOTICES, meta: Mapping[str, Json] | None = None
) -> Reply:
    """Reply with a text, the token to go on with, and the notices about the call after it (rule 18)."""
    whole = f"{text.rstrip()}\n\n{notices.text}" if notices.listed else text
    return _reply(whole, token, notices, meta)


def _reply(text: str, token: str | None, notices: Notices, meta: Mapping[str, Json] | None) -> Reply:
    tokens: dict[str, Json] = {"session_token": token} if token else {}
    status = "warning" if notices.listed else "valid"
    warnings: list[Json] = [*notices.messages] if notices.listed else []
    validation: dict[str, Json] = {"status": status, "warnings": warnings}
    return Reply(text, meta={**tokens, **(meta or {}), "validation": validation})


def json_reply(
    body: Mapping[str, Json],
    token: str | None,
    notices: Notices = NO_NOTICES,
    meta: Mapping[str, Json] | None = None,
) -> Reply:
    """Reply with a JSON object as the text; a model sees nothing else, so the notices are in it."""
    warned: dict[str, Json] = {"warnings": list(notices.messages)} if notices.listed else {}
    return _reply(as_json({**body, **warned}), token, notices, meta)


def with_warning(reply: Reply, warning: str) -> Reply:
    """Add a warning to a reply whose text is a JSON object; the rest of it stays as it is."""
    body = msgspec.json.decode(reply.text)
    told: list[Json] = [warning, *body.get("warnings", ())]
    validation: dict[str, Json] = {"status": "warning", "warnings": told}
    text, meta = as_json({**body, "warnings": told}), {**reply.meta, "validation": validation}
    return Reply(text, reply.structured, meta, reply.is_error)


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
    example = (about or {}).get("example") if code == Code.OUTPUT_REQUIRED.value else None
    shown = [f"Example of an artifact: {as_json(example)}"] if example is not None else []
    lines = [message, f"Next: {next_action}", *shown, *([f"session_token: {token}"] if token else [])]
    meta: dict[str, Json] = {"validation": {"status": "error", "warnings": []}}
    return Reply("\n".join(lines), body, {**meta, "session_token": token} if token else meta, is_error=True)


def of_error(error: LedgerError) -> Reply:
    """Answer an error of the ledger."""
    about: dict[str, Json] = {**error.details}
    if error.after_ms is not None:
        about["retry_after_ms"] = error.after_ms
    current = about.pop("token", None)
    token = current if isinstance(current, str) else None
    if token is not None:
        about["session_token"] = token
    return failure(error.code, error.message, recovery(error), about, token)


def of_refusal(refusal: Refusal, words: Words, token: str | None) -> Reply:
    """Answer a refusal in the words of the surface, its data as fields."""
    return failure(refusal.code.value, words.message, words.next_action, fields(refusal), token)
