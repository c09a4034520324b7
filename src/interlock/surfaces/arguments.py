"""Reading what agents send: context within its budget, output in its two spellings."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from interlock.core.run.output import Output
from interlock.core.values import Json

CONTEXT_BYTES = 256 * 1024
ARTIFACT_BYTES = 256 * 1024
DEEPEST = 64
FORBIDDEN = ("__proto__", "constructor", "prototype")


class Unfit(Struct, frozen=True):
    """Why an argument is refused, where, and what would be right."""

    message: str
    path: str
    suggestion: str
    details: dict[str, Json] = {}


def message_and_path(reason: str) -> tuple[str, str]:
    """Split what the decoder says about arguments into the message and the path of the argument."""
    message, separator, path = reason.rpartition(" - at `$")
    return (message, path.rstrip("`").lstrip(".")) if separator else (reason, "")


def check_context(context: Mapping[str, Json] | None, name: str = "context") -> Unfit | None:
    """Refuse variables that are too large, too deep, or have a forbidden key; `name` is the parameter's."""
    if not context:
        return None
    bad = next((key for key in context if key in FORBIDDEN), None)
    if bad is not None:
        return Unfit(f"'{bad}' is not allowed as a key of {name}.", f"{name}.{bad}", "Rename the key.")
    if depth(context) > DEEPEST:
        return Unfit(f"{name} is nested deeper than {DEEPEST} levels.", name, "Send flatter values.")
    return _measured(context, name, CONTEXT_BYTES)


def _measured(value: Json, name: str, limit: int) -> Unfit | None:
    if len(msgspec.json.encode(value)) <= limit // 2:
        return None
    size = _canonical_size(value)
    if size <= limit:
        return None
    return Unfit(
        f"{name} has {size} bytes; at most {limit} are allowed.",
        name,
        f"Keep large data in files and send references in {name}.",
        {"measuredBytes": size, "maxBytes": limit, "method": "jcs_utf8_bytes"},
    )


def _canonical_size(value: Json) -> int:
    from interlock.core.hashing import canonical

    return len(canonical(value))


def depth(value: Json) -> int:
    """How deeply the value is nested, without recursion."""
    deepest, pending = 0, [(value, 0)]
    while pending:
        one, level = pending.pop()
        deepest = max(deepest, level)
        if isinstance(one, Mapping):
            pending.extend((member, level + 1) for member in one.values())
        elif isinstance(one, (list, tuple)):
            pending.extend((member, level + 1) for member in one)
    return deepest


def read_output(raw: Mapping[str, Json] | None) -> Output | Unfit:
    """Read notes and artifacts; an output with a `kind` is one artifact (rule 31)."""
    if raw is None:
        return Output()
    notes = raw.get("notesMarkdown", "")
    if not isinstance(notes, str):
        return Unfit("output.notesMarkdown must be text.", "output.notesMarkdown", "Send a string.")
    artifacts = raw.get("artifacts", [])
    if not isinstance(artifacts, list) or not all(isinstance(one, Mapping) for one in artifacts):
        return Unfit("output.artifacts must be a list of objects.", "output.artifacts", "Send [{kind: …}].")
    own = {key: value for key, value in raw.items() if key not in ("notesMarkdown", "artifacts")}
    if own and "kind" not in own:
        return Unfit(
            f"output has no member “{next(iter(own))}”.",
            f"output.{next(iter(own))}",
            "Send output.notesMarkdown and output.artifacts, or one artifact with a kind.",
        )
    found = Output(notes, (*artifacts, own) if own else tuple(artifacts))
    return _fit(found)


def _fit(output: Output) -> Output | Unfit:
    nameless = next(
        (n for n, one in enumerate(output.artifacts) if not isinstance(one.get("kind"), str)), None
    )
    if nameless is not None:
        return Unfit(
            f"output.artifacts[{nameless}] has no kind.",
            f"output.artifacts[{nameless}].kind",
            "Give every artifact a kind.",
        )
    if depth(output.artifacts) > DEEPEST:
        return Unfit("The artifacts are nested too deeply.", "output.artifacts", "Send flatter values.")
    return _measured(output.artifacts, "output.artifacts", ARTIFACT_BYTES) or output
