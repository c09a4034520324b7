"""Run the long figures and write what they printed to docs/proof.md, each part into its own section.

    python -m tools.proof [--seed N] [--only laws,kills,crashes,histories,load,faults,flips,search,…]

The tests marked `proof` run a tenth of each figure with every `make test`; here they run in full. The laws
are searched at random here, and with a fixed seed by `make test`.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import re
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import apsw
from msgspec import Struct

PAGE = Path("docs/proof.md")
PRINTED = "proof: "
TEXT = re.compile(r"^## (.+)\n\n(?:.+\n)+\n```text\n((?:.*\n)*?)```$", re.MULTILINE)


class Part(Struct, frozen=True):
    """One part of the proof: what it shows, and the module with its arguments that shows it."""

    title: str
    about: str
    arguments: tuple[str, ...]


def _tests(file: str) -> tuple[str, ...]:
    return ("pytest", "-q", "-s", "-m", "proof", "-p", "no:xdist", file)


PARTS = {
    "laws": Part(
        "Laws",
        "What must always hold is searched for a counterexample among random workflows, calls and files.",
        ("pytest", "-q", "-n", "auto", "-m", "hypothesis", "--hypothesis-seed={seed}"),
    ),
    "kills": Part(
        "Kills",
        "A server that records steps is killed at random moments, and the call in flight is sent again.",
        _tests("tests/ledger/test_crashes.py"),
    ),
    "crashes": Part(
        "Crashes of PostgreSQL",
        "Eight servers on own and shared sessions are killed, and their database is stopped as in a crash.",
        _tests("tests/store/test_postgres_processes.py"),
    ),
    "histories": Part(
        "Histories",
        "Clients share a run on the store in memory, in the order that a seed decides, with failures and\n"
        "dying processes; one sequential history must explain what they were told. Alone:\n"
        "`python -m tools.history`.",
        _tests("tests/history"),
    ),
    "load": Part(
        "Mixed load",
        "Eight groups of clients share runs on two replicas and one PostgreSQL for 30 minutes: steps,\n"
        "repeats, rivals with the same tokens, gates, answers, reads. One replica is killed and restarted,\n"
        "both are stalled, the database crashes, clients cut connections. One sequential history for each\n"
        "run, and its log, must explain every answer. `make test` does it for two minutes.",
        _tests("tests/transport/test_http_replicas.py"),
    ),
    "faults": Part(
        "Disk faults",
        "Writes and syncs of the file fail, or succeed and are reported as failed.",
        _tests("tests/ledger/test_faults.py"),
    ),
    "flips": Part(
        "Byte flips",
        "One bit of the store's files is changed; then `interlock doctor` is run, and `doctor --repair`.",
        _tests("tests/ledger/test_byte_flips.py"),
    ),
    "search": Part(
        "Ways past a gate",
        "Small workflows and all that an agent can send, for 20 minutes and 300,000 states or more: those\n"
        "of two items to their end, to depth five and with one write a run, then larger ones with two\n"
        "writes. A second oracle judges what was recorded; honest agents walk the same workflows. Each\n"
        "exception that the engine once had is put back, found without the guard, and held by it. In 60\n"
        "mutants of the engine one condition is turned around: with the guard on the oracle must see\n"
        "nothing. Alone: `python -m tools.search --whole`, `python -m tools.search.put_back`,\n"
        "`python -m tools.search.engine_mutants`.",
        _tests("tests/search"),
    ),
    "mutants": Part(
        "Mutants",
        "The promises of the store are broken one by one; the tests notice each.",
        ("tools.mutants",),
    ),
    "sample": Part(
        "Sampled mutants",
        "Sixty conditions of core and ledger, chosen by chance, are turned around one at a time; the tests\n"
        "must notice at least 56. The quick tests that enter the changed function come first, the whole\n"
        "suite only if they leave too many. A run that was stopped goes on with the same seed, while\n"
        "the sources stay the same: `python -m tools.sampled_mutants --seed N`.",
        ("tools.sampled_mutants", "--seed", "{seed}"),
    ),
    "growth": Part(
        "Growth",
        "What a step costs, in milliseconds, after many steps of its run and beside many stored sessions.",
        ("bench.growth", "--postgres", "1000,100000,1000000", "--plots", "docs/images"),
    ),
}
HEAD = """\
# Proof

What `make proof` printed, with a new seed each time. `lost` and `doubled` count acknowledged steps. Every
`make test` searches the laws, and runs a tenth of the kills, crashes, histories, faults, flips and the search
for ways past a gate, with a fixed seed.

A flip is `harmless` if doctor finds nothing and every stored row is as before; `repaired` if all events are
in their logs again; `cut` if a damaged command and those after it were taken out of their log, named, and
kept beside it. There is no fourth outcome.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default=",".join(PARTS))
    options = parser.parse_args()
    results = [run(PARTS[name], options.seed) for name in options.only.split(",")]
    sys.exit(not all(results))


def run(part: Part, seed: int) -> bool:
    """Run one part, write its section, and say whether it passed."""
    began, environment = perf_counter(), {**os.environ, "PROOF": "1", "PROOF_SEED": str(seed)}
    command = [sys.executable, "-m", *(argument.format(seed=seed) for argument in part.arguments)]
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    lines = ran.stdout.rstrip().splitlines()
    told = [line.removeprefix(PRINTED) for line in lines if line.startswith(PRINTED)] or lines
    verdict = "passed" if ran.returncode == 0 else "FAILED"
    machine = f"{platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    told.append(f"{verdict} in {perf_counter() - began:.0f} s; {machine}, SQLite {apsw.sqlite_lib_version()}")
    write(part, "\n".join(told))
    print("\n".join([part.title, *told]), flush=True)
    if ran.returncode:
        print(ran.stdout)
    return ran.returncode == 0


def write(part: Part, told: str) -> None:
    """Put what a part printed into its section; the others stay as they are."""
    texts = dict(TEXT.findall(PAGE.read_text("utf-8"))) if PAGE.exists() else {}
    texts[part.title] = f"{told}\n"
    sections = (
        f"\n## {each.title}\n\n{each.about}\n\n```text\n{texts[each.title]}```\n"
        for each in PARTS.values()
        if each.title in texts
    )
    PAGE.write_text(HEAD + "".join(sections), "utf-8")


if __name__ == "__main__":
    main()
