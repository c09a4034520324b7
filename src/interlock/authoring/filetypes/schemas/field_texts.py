"""What each field of a file means: the text below it in its source type, read from the source code."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from textwrap import dedent

from msgspec.structs import fields

from interlock.authoring.filetypes.field_types import Camel


@cache
def field_texts(kind: type[Camel]) -> dict[str, str]:
    """Return the text below each field, by the name that the field has in files."""
    (definition,) = ast.parse(dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    texts = dict(_texts(definition))
    return {field.encode_name: texts[field.name] for field in fields(kind) if field.name in texts}


def _texts(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, below in pairwise(definition.body):
        match statement, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, " ".join(text.split())
