"""Runs one command, and ends it with everything that it has started. It is a program of its own.

A server starts it with a pipe on stdin: one line of JSON, the command. When that pipe closes, because the
time is over, the client is gone or the server has died, the command is killed. What the command prints goes
to stdout; how it ended goes to stderr, which the command does not get.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
LOOK_SECONDS = 0.02
KILL_SECONDS = 5.0


def main() -> None:
    """Run the command of the first line, in the folder that is open as the given descriptor."""
    command = json.loads(sys.stdin.buffer.readline())
    os.fchdir(command["folder"])
    os.close(command["folder"])
    keep_apart()
    try:
        child = subprocess.Popen(
            command["argv"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=end_with_parent,  # noqa: PLW1509 - this program has one thread
        )
    except OSError as error:
        report({"error": error.strerror or str(error)})
        return
    is_stopped = False
    while child.poll() is None and not is_stopped:
        ready, _, _ = select.select([0], [], [], LOOK_SECONDS)
        is_stopped = bool(ready) and not os.read(0, 1)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    end_orphans()
    report({"exit": None if is_stopped else child.returncode})


def keep_apart() -> None:
    """Become the parent of what the command leaves behind, also of what has left its process group.

    And let no process of the same user reach into this one, to say in its place how the command ended.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            system = ctypes.CDLL(None)
            system.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            system.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def end_with_parent() -> None:
    """Let the command end if its supervisor is killed, which a command of the same user can do."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def end_orphans() -> None:
    """Kill what the command has left behind, until nothing is left."""
    ends = time.monotonic() + KILL_SECONDS
    while time.monotonic() < ends and (orphans := children_of(os.getpid())):
        for orphan in orphans:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(orphan, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def children_of(parent: int) -> list[int]:
    """Return the processes whose parent this is; none where the system does not show them."""
    children = []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else []:
        if not name.isdigit():
            continue
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as stat:
            if int(stat.read().rpartition(b")")[2].split()[1]) == parent:
                children.append(int(name))
    return children


def report(ended: dict[str, object]) -> None:
    """Tell the server how the command ended."""
    with suppress(OSError):
        os.write(2, json.dumps(ended).encode())


if __name__ == "__main__":
    main()
