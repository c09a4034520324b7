"""The pipe under a conversation: bytes in, whole lines out, and an end that leaves nothing half-written.

One select loop, because a handler never waits; where a pipe cannot be selected on, a thread reads for it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

from interlock.surfaces.tool import RpcFailure, Surface
from interlock.transport.stdio.rpc import PARSE_ERROR, error_line

LINE_LIMIT = 8 * 1024 * 1024
_CHUNK = 64 * 1024
_ATOM = 4096  # a pipe that is ready to be written takes at least this much without blocking
_LAST_WORD = 1.0
_HEARTBEAT = 2.0


class Conversation(Protocol):
    """What is said over the pipe."""

    @property
    def finished(self) -> bool:
        """Whether the client has asked us to leave."""

    def receive(self, line: bytes) -> list[bytes]:
        """Take one line and give the lines to send back."""


def serve(
    surface: Surface, stdin_fd: int = 0, stdout_fd: int = 1, *, server_name: str = "interlock", version: str
) -> int:
    """Serve a surface until the input ends, the parent is gone or a signal says stop; give the exit code."""
    _keep_stderr()
    source, sink = _private_input(stdin_fd), _private_output(stdout_fd)
    conversation = _conversation(surface, server_name, version)
    ending = Ending()
    with suppress(ConnectionError):
        _converse(conversation, _chunks(source, ending), Outlet(sink, ending))
    return 0


def _conversation(surface: Surface, server_name: str, version: str) -> Conversation:
    if surface.profile == "lookup":
        from interlock.transport.stdio.lookup import Lookup

        return Lookup(surface)
    from interlock.transport.stdio.connection import Connection
    from interlock.transport.stdio.results import Server

    return Connection(surface, Server(server_name, version))


def _converse(conversation: Conversation, chunks: Iterator[bytes], outlet: Outlet) -> None:
    lines = LineBuffer(LINE_LIMIT)
    for chunk in chunks:
        for line in lines.feed(chunk):
            for answer in _answers(conversation, line):
                outlet.write(answer)
            if conversation.finished or outlet.ending.asked:
                return


def _answers(conversation: Conversation, line: bytes | None) -> list[bytes]:
    if line is None:
        details = f"a line may have {LINE_LIMIT} bytes"
        return [error_line(None, RpcFailure(PARSE_ERROR, "Parse error", {"details": details}))]
    return conversation.receive(line) if line.strip() else []


class LineBuffer:
    """Cuts bytes into lines; of one that is too long only the length is kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """Give the lines that this chunk completes; None stands for one over the limit."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._add(end)
            yield self._taken()
        self._add(rest)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            self._parts.clear()
        else:
            self._parts.append(part)

    def _taken(self) -> bytes | None:
        line = None if self._size > self._limit else b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return line


class Ending:
    """Whether a signal has asked us to stop; `fd` becomes readable when one has."""

    def __init__(self) -> None:
        self.asked = False
        self.fd, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._ask)

    def _ask(self, _number: int, _frame: object) -> None:
        self.asked = True


class Outlet:
    """Writes whole lines, and does not hang on a reader that no longer reads once we are to stop."""

    def __init__(self, fd: int, ending: Ending) -> None:
        self.ending = ending
        self._fd = fd

    def write(self, line: bytes) -> None:
        """Write one line to its end."""
        rest = memoryview(line)
        while rest:
            self._wait()
            rest = rest[os.write(self._fd, rest[:_ATOM]) :]

    def _wait(self) -> None:
        if sys.platform == "win32":
            return
        while not self.ending.asked:
            if select.select([self.ending.fd], [self._fd], [])[1]:
                return
        if not select.select([], [self._fd], [], _LAST_WORD)[1]:
            raise BrokenPipeError


class Parent:
    """The process that started us; most ends of it close our input, but a sibling may hold that open."""

    def __init__(self) -> None:
        self._pid = os.getppid()
        self.fds = _exit_notice(self._pid)
        self.patience = None if self.fds or self._pid <= 1 else _HEARTBEAT

    def gone(self) -> bool:
        """Tell whether it has ended."""
        return os.getppid() != self._pid


def _exit_notice(pid: int) -> list[int]:
    if sys.platform != "linux" or pid <= 1:
        return []
    try:
        return [os.pidfd_open(pid)]
    except OSError:
        return []


def _chunks(fd: int, ending: Ending) -> Iterator[bytes]:
    if sys.platform == "win32":
        from interlock.transport.stdio.feeder import fed_chunks

        return fed_chunks(fd, lambda: ending.asked)
    return _selected_chunks(fd, ending)


def _selected_chunks(fd: int, ending: Ending) -> Iterator[bytes]:
    parent = Parent()
    while not ending.asked:
        ready, _, _ = select.select([fd, ending.fd, *parent.fds], [], [], parent.patience)
        if ending.fd in ready:
            return
        if fd in ready:
            chunk = os.read(fd, _CHUNK)
            if not chunk:
                yield b"\n"  # the last line may lack its end
                return
            yield chunk
        elif parent.gone():
            return


def _keep_stderr() -> None:
    """Fill a closed stderr, lest the number be given to a pipe of the protocol and printed to."""
    try:
        os.fstat(2)
    except OSError:
        os.open(os.devnull, os.O_WRONLY)


def _private_input(fd: int) -> int:
    """Keep the input for ourselves: a child process must not drink from it."""
    if fd != 0:
        return fd
    private = os.dup(fd)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, fd)
    os.close(nothing)
    return _binary(private)


def _private_output(fd: int) -> int:
    """Keep the output for the protocol: whatever else prints, prints to stderr."""
    if fd != 1:
        return fd
    private = os.dup(fd)
    os.dup2(2, fd)
    return _binary(private)


def _binary(fd: int) -> int:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(fd, os.O_BINARY)
    return fd
