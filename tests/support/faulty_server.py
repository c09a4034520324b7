"""`interlock` with a fault planted in its engine: it passes every gate as if that were optional."""

from __future__ import annotations

import sys
from typing import Any

from interlock.__main__ import main
from interlock.core.engine import settle
from interlock.core.run.events import GatePassed
from interlock.core.run.state import instance


def _passed(plan: Any, state: Any, op: Any, following: str, policy: Any, now: int) -> GatePassed:
    return GatePassed(instance(state, op.gate.id), op.gate.id, following, "optional")


if __name__ == "__main__":
    settle._ask = _passed  # type: ignore[assignment]
    sys.exit(main())
