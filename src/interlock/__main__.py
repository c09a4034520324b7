"""The entrance. `interlock mcp` goes past click: an agent's chat pays for every millisecond."""

from __future__ import annotations

import gc
import sys


def main() -> int:
    """Run the command line."""
    if sys.argv[1:2] == ["mcp"] and not {"--help", "-h"} & set(sys.argv[2:]):
        gc.disable()  # until the server is built: looking for garbage among modules costs and finds nothing
        from interlock.cli.mcp import serve_stdio

        try:
            return serve_stdio(sys.argv[2:])
        except KeyboardInterrupt:  # before the server listens for signals
            return 130
    from interlock.cli.main import cli

    return int(cli(prog_name="interlock") or 0)


if __name__ == "__main__":
    sys.exit(main())
