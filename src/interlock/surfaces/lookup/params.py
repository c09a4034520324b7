"""The parameters of the lookup tools, as strict as their document, and refusals that name the field.

Ids are taken as they are shown and as they are written (rule 38), hence `.` and `_` in their pattern.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType

from interlock.core.values import Json
from interlock.surfaces.arguments import decoding_error

SHORTEST_ID, LONGEST_ID = 3, 64

Id = Annotated[str, Meta(pattern=r"^[a-z0-9._-]+\Z")]
Text = Annotated[str, Meta(min_length=1)]
Mode = Literal["metadata", "preview"]

_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<field>[^`]*)`")
_PLAIN_WORDS = {
    re.compile(r"Expected `str` matching regex .*", re.DOTALL): "must match ^[a-z0-9-]+$",
    re.compile(r"Invalid enum value .*", re.DOTALL): f"must be {' or '.join(get_args(Mode))}",
}


class Get(Struct, frozen=True, forbid_unknown_fields=True):
    id: Id
    mode: Mode | UnsetType = UNSET


class Next(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    workflow_id: Id
    completed_steps: tuple[Id, ...]
    current_step: Id | UnsetType = UNSET
    context: dict[str, Json] | UnsetType = UNSET


class Validate(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    workflow_id: Id
    step_id: Id
    output: Text
    context: dict[str, Json] | UnsetType = UNSET


class ValidateJson(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    workflow_json: Text


def details(error: str) -> str:
    """Turn the decoder's message into the document's words, the field first."""
    if match := _MISSING.match(error):
        return f"{match['field']} is required"
    if match := _UNKNOWN.match(error):
        return f"{match['field']} is not a parameter"
    decoding = decoding_error(error)
    said = error.partition(" - at `$")[0]
    message = next(
        (plain for pattern, plain in _PLAIN_WORDS.items() if pattern.match(said)), decoding.message
    )
    return f"{decoding.path or 'params'}: {message}"


def length_error(field: str, id_: str) -> str | None:
    """Say what is wrong with the length of an id that does not exist."""
    if SHORTEST_ID <= len(id_) <= LONGEST_ID:
        return None
    return f"{field}: must have {SHORTEST_ID} to {LONGEST_ID} characters"
