"""Search for ways past a gate, and walk the same workflows honestly; print figures and stories.

    python -m tools.search [--seed N] [--seconds 120] [--processes 2] [--most 1000] [--whole]

A whole search that was stopped goes on, while the sources stay the same: each workflow that was searched
whole is kept in `build`.

The exit code is 1 if a violation was found, or an honest agent did not come to the end.
"""

from __future__ import annotations

import argparse
import os
import sys
from itertools import islice
from random import randrange

from tools.search.counterexample import minimised, story
from tools.search.explore import MAIN, MOST, all_workflows, search_in_parallel
from tools.search.honest import walk_all

WALKED = 3000  # workflows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("PROOF_SEED") or randrange(10**6)))
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--most", type=int, default=MOST, help="states of a workflow under one setting")
    parser.add_argument("--whole", action="store_true", help="search workflows of two items to their end")
    options = parser.parse_args()
    whole = options.seconds if options.whole else 0
    figures = search_in_parallel(
        options.seed, options.seconds, options.processes, most=options.most, whole=whole
    )
    for found in figures.first.values():
        print(story(minimised(found)), end="\n\n")
    for line in figures.lines():
        print(f"proof: {line}", flush=True)
    walked = walk_all(islice(all_workflows(options.seed), WALKED), MAIN, options.seconds / 4)
    for walk in walked.stuck[:10]:
        print(f"stuck: {walk.data.name} on {walk.setting.surface}, {walk.refused}")
    for line in (*walked.lines(), f"seed {options.seed}"):
        print(f"proof: {line}")
    sys.exit(bool(figures.violations) or bool(walked.stuck))


if __name__ == "__main__":
    main()
