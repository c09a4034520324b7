"""Run the long figures and write what they printed to docs/proof.md.

    python -m tools.proof [--seed N] [--only kills,flips,faults,crashes] [--sessions 1000,100000,1000000]

The tests marked `proof` run a tenth of each figure with every `make test`; here they run in full.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import apsw

PAGE = Path("docs/proof.md")
PARTS = {
    "kills": "tests/ledger/test_crashes.py",
    "faults": "tests/ledger/test_faults.py",
    "flips": "tests/ledger/test_byte_flips.py",
    "crashes": "tests/store/test_postgres_processes.py",
}
HEAD = """\
# Proof

What `make proof` printed: servers killed while they record steps, failing disks, changed bytes, and a
PostgreSQL that is stopped in immediate mode again and again. `lost` and `doubled` count acknowledged steps.
Every `make test` runs a tenth of these figures with a new seed.

In *byte flips* one bit of the store's files is changed; then `interlock doctor` is run, and
`interlock doctor --repair`. A flip is `harmless` if doctor finds nothing and every stored row is as before;
`repaired` if all events are in their logs again; `cut` if a damaged command and those after it were taken out
of their log, named, and kept beside it. There is no fourth outcome.

`python -m tools.mutants` breaks the promises of the store one by one and shows that the tests notice each.

"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--sessions", default="1000,100000,1000000", help="sizes to measure; empty for none")
    options = parser.parse_args()
    lines = [f"{platform.system()} on {os.cpu_count()} cores, Python {platform.python_version()}"]
    lines[0] += f", SQLite {apsw.sqlite_lib_version()}, seed {options.seed}"
    failed = False
    for part in filter(None, options.only.split(",")):
        started = perf_counter()
        command = [sys.executable, "-m", "pytest", "-q", "-s", "-m", "proof", "-p", "no:xdist", PARTS[part]]
        environment = {**os.environ, "PROOF": "1", "PROOF_SEED": str(options.seed)}
        ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        failed = failed or ran.returncode != 0
        lines += [
            line.removeprefix("proof: ") for line in ran.stdout.splitlines() if line.startswith("proof:")
        ]
        lines.append(
            f"  {part}: {'passed' if ran.returncode == 0 else 'FAILED'} in {perf_counter() - started:.0f} s"
        )
        print("\n".join(lines[-3:]), flush=True)
        if ran.returncode:
            print(ran.stdout)
    if options.sessions:
        command = [sys.executable, "-m", "bench.growth", "--sessions", options.sessions]
        grown = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        failed = failed or grown.returncode != 0
        lines += ["", grown.stdout.rstrip()]
        print(grown.stdout)
    body = "\n".join(lines)
    PAGE.write_text(f"{HEAD}```text\n{body}\n```\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
