"""Check histories: of the clients in memory, in the orders that seeds decide, or one that was kept in a file.

python -m tools.history [--seeds 1-200] [--file HISTORY --gate 10]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.history.check import unexplained
from tools.history.model import ModelRun
from tools.history.record import read_history
from tools.history.schedule import checked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="1-200", help="the first and the last seed")
    parser.add_argument("--file", type=Path, help="a history that a failure has kept")
    parser.add_argument("--gate", type=int, default=10, help="how many steps come before its gate")
    options = parser.parse_args()
    if options.file:
        why = unexplained(read_history(options.file), ModelRun(options.gate))
        sys.exit(str(why) if why else None)
    first, _, last = options.seeds.partition("-")
    failed = {seed: why for seed in range(int(first), int(last or first) + 1) if (why := checked(seed))}
    for seed, why in failed.items():
        print(f"seed {seed}: {why}\n")
    print(f"seeds {options.seeds}: {len(failed)} unexplained")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
