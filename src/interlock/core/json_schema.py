"""JSON Schema checks whose messages name the member and the violation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol

import msgspec

from interlock.core.values import Json

MOST = 5


class _Validates(Protocol):
    def iter_errors(self, value: Json) -> object: ...


def violations(schema: Mapping[str, Json], value: Json) -> list[str]:
    """Name at most five violations of the schema, each with the path of the member."""
    if not schema:
        return []
    validator = _validator(msgspec.json.encode(schema, order="sorted"))
    messages = []
    for error in validator.iter_errors(value):  # type: ignore[attr-defined]
        path = "/".join(str(part) for part in error.instance_path)
        messages.append(f"{path or 'the value'}: {error.message}")
        if len(messages) == MOST:
            break
    return messages


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> _Validates:
    import jsonschema_rs

    validator: _Validates = jsonschema_rs.validator_for(
        msgspec.json.decode(schema), pattern_options=jsonschema_rs.RegexOptions()
    )
    return validator
