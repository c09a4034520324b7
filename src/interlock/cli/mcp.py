"""`interlock mcp`: the stdio server. Parsed by hand, because click alone costs more than the server."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from interlock import __version__
from interlock.cli.config import BadConfig, known, resolve

MANY = ("workflows", "disable-tools")


def run(arguments: Sequence[str]) -> int:
    """Serve one surface on stdin and stdout until the client leaves."""
    try:
        config = resolve(flags_of(arguments))
        from interlock.cli.compose import surface_of
        from interlock.transport.stdio.pipe import serve

        surface = surface_of(config)
    except BadConfig as error:
        print(f"interlock mcp: {error}", file=sys.stderr)
        return 2
    return serve(surface, version=__version__)


def flags_of(arguments: Sequence[str]) -> dict[str, Any]:
    """Read `--name value` and `--name=value`; flags that may repeat collect their values."""
    flags: dict[str, Any] = {}
    pending = list(arguments)
    while pending:
        name, separator, value = pending.pop(0).partition("=")
        if not name.startswith("--") or name[2:] not in known():
            raise BadConfig(f"unknown option {name}. See interlock mcp --help")
        if not separator:
            if not pending:
                raise BadConfig(f"{name} needs a value")
            value = pending.pop(0)
        if name[2:] in MANY:
            flags.setdefault(name[2:], []).append(value)
        else:
            flags[name[2:]] = value
    return flags
