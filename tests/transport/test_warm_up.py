"""Simultaneous first calls on a fresh server with threads: msgspec must have built its types before."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from interlock.surfaces.lookup import LookupSurface
from interlock.surfaces.warm_up import struct_types, warm_up
from support.harness import Bench

THREADS = textwrap.dedent("""
    import threading
    from interlock.authoring.library import BUNDLED, Library
    from interlock.surfaces.warm_up import warm_up

    warm_up()
    together = threading.Barrier(8)

    def first_calls():
        library = Library([BUNDLED])
        together.wait()
        for workflow_id in ("wr.feature", "work-package", "meta"):
            library.load(workflow_id)

    threads = [threading.Thread(target=first_calls) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
""")


def test_every_type_that_a_call_may_reach_is_prepared(tmp_path: Path) -> None:
    warm_up(LookupSurface(Bench(tmp_path).ledger().library))
    modules = {struct.__module__ for struct in struct_types()}
    assert {"interlock.authoring.filetypes.step_file", "interlock.core.run.events"} <= modules
    assert {"interlock.surfaces.navigation.params", "interlock.ledger.transfer.bundle"} <= modules


@pytest.mark.slow
def test_simultaneous_first_calls_do_not_crash_a_warm_process() -> None:
    for _ in range(8):  # without the warm-up two in five crash
        done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
