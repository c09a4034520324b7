"""`interlock mcp`: the stdio server. Its options are parsed by hand, because importing click takes longer."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import Any

from interlock import __version__
from interlock.cli.config import FOR_SERVE, LISTS, BadConfig, resolve, setting_names

AT_A_TERMINAL = """\
interlock mcp is a server for AI agents: an MCP client starts it and speaks JSON-RPC on its stdin and stdout.
  Connect a client:      interlock install CLIENT   (claude-code, cursor, vscode, codex and others)
  See it at work:        interlock demo
  Answer open questions: interlock inbox, or interlock console in the browser
Waiting for a client's messages. Press Ctrl-C to stop."""


def serve_stdio(arguments: Sequence[str]) -> int:
    """Serve one surface on stdin and stdout until the client disconnects."""
    try:
        flags = parsed_flags(arguments)
        config = resolve(flags)
        from interlock.cli.compose import surface_of
        from interlock.transport.stdio.pipe import serve

        surface = surface_of(config, flags)
    except BadConfig as error:
        print(f"interlock mcp: {error}", file=sys.stderr)
        if "lookup" in arguments or "--surface=lookup" in arguments:  # its document wants it on the pipe
            from interlock.transport.stdio.lookup import fatal_line

            print(fatal_line(str(error)))
        return 2
    if sys.stdin is not None and sys.stdin.isatty():
        print(AT_A_TERMINAL, file=sys.stderr)
    gc.freeze()
    gc.enable()
    return serve(surface, version=__version__)


def parsed_flags(arguments: Sequence[str]) -> dict[str, Any]:
    """Read `--name value` and `--name=value`; flags that may repeat collect their values."""
    flags: dict[str, Any] = {}
    pending = list(arguments)
    while pending:
        flag, separator, value = pending.pop(0).partition("=")
        name = flag.removeprefix("--")
        if name == flag or name not in setting_names() or name in FOR_SERVE:
            raise BadConfig(f"unknown option {flag}. See interlock mcp --help")
        if not separator:
            if not pending:
                raise BadConfig(f"{flag} needs a value")
            value = pending.pop(0)
        if name in LISTS:
            flags.setdefault(name, []).append(value)
        else:
            flags[name] = value
    return flags
