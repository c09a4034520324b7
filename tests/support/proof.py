"""How large the long figures are: whole for `make proof`, a tenth in every other run; and their seed.

`tools/proof.py` sets PROOF and PROOF_SEED. Without them everything random has a fixed seed, so that no run of
the tests depends on luck.
"""

from __future__ import annotations

import os

FULL = bool(os.environ.get("PROOF"))
SEED = int(os.environ.get("PROOF_SEED") or 1)


def times(full: int) -> int:
    """Return how often to do what the proof does this often."""
    return full if FULL else max(full // 10, 1)


def line(what: str, **figures: object) -> str:
    """Write one line of the proof, to be printed."""
    listed = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in figures.items())
    return f"\nproof: {what}: {listed}, seed {SEED}"
