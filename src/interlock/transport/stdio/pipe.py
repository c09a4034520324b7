"""The stdio server's loop: bytes in, whole lines out, and an exit that leaves no line half-written.

One select loop is enough, because a handler never waits. Where a pipe cannot be selected on, as on Windows,
a thread reads for it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol

from msgspec import Struct

from interlock.surfaces.call import RpcError
from interlock.surfaces.tool import Surface, report_exception
from interlock.transport.rpc import INTERNAL_ERROR, RequestId, error_line, id_at_either_end, parse_error

LINE_LIMIT = 8 * 1024 * 1024
_END_BYTES = 1024
_READ_BYTES = 64 * 1024
_WRITE_BYTES = 4096  # a pipe that is ready to be written takes at least this much without blocking
_LAST_WRITE_SECONDS = 1.0
_PARENT_CHECK_SECONDS = 2.0
_STOP_CHECK_SECONDS = 0.5
_IDLE_SECONDS = 0.5


Patience = Callable[[], float | None]


class Conversation(Protocol):
    """What a pipe carries: lines of the client and our answers."""

    @property
    def finished(self) -> bool:
        """Whether the client has asked the server to exit."""

    def receive(self, line: bytes) -> list[bytes]:
        """Take one line and return the lines to send back."""

    def refuse_unread(self, id: RequestId, error: RpcError) -> list[bytes]:
        """Return the lines to send back for one that was not read."""

    def patience(self) -> float | None:
        """Return the seconds until `look` is to be called; None if nothing waits."""

    def look(self) -> list[bytes]:
        """Return the lines to send for calls that wait."""

    def end(self) -> list[bytes]:
        """Return the lines that end what is still open, because the server stops."""


def serve(
    surface: Surface, stdin_fd: int = 0, stdout_fd: int = 1, *, server_name: str = "interlock", version: str
) -> int:
    """Serve a surface until the input ends, the parent exits or a signal arrives; return the exit code."""
    source, sink = _private_descriptors(stdin_fd, stdout_fd)
    conversation: Conversation
    if surface.profile == "lookup":
        from interlock.transport.stdio.lookup import Lookup

        conversation = Lookup(surface)
    else:
        from interlock.transport.results import ServerInfo
        from interlock.transport.stdio.connection import Connection

        conversation = Connection(surface, ServerInfo(server_name, version))
    stop = StopSignal()
    if sys.platform == "win32":
        chunks = threaded_chunks(source, lambda: stop.received, conversation.patience)
    else:
        chunks = selected_chunks(source, stop, conversation.patience)
    writer = LineWriter(sink, stop)
    try:
        with suppress(ConnectionError):
            converse(conversation, chunks, writer, surface.idle)
            for line in conversation.end() if stop.received else ():
                writer.write(line)
    except Exception as error:  # the edge of the process: the client hears of it before the server ends
        details = f"Reference {report_exception('the server', error)} on the server's stderr"
        with suppress(ConnectionError):
            writer.write(error_line(None, RpcError(INTERNAL_ERROR, "Internal error", {"details": details})))
        return 1
    finally:
        surface.close()
    return 0


def converse(
    conversation: Conversation, chunks: Iterator[bytes], writer: LineWriter, idle: Callable[[], None]
) -> None:
    """Answer line by line until the input ends or the server is to stop; an empty chunk means idle."""
    lines = LineBuffer(LINE_LIMIT)
    for chunk in chunks:
        if not chunk:
            idle()
        if conversation.patience() == 0:
            for answer in conversation.look():
                writer.write(answer)
        for line in lines.feed(chunk):
            answers: list[bytes] = []
            if isinstance(line, TooLong):
                error = parse_error(f"a line may have {LINE_LIMIT} bytes")
                answers = conversation.refuse_unread(id_at_either_end(line.head, line.tail), error)
            elif line.strip():
                answers = conversation.receive(line)
            for answer in answers:
                writer.write(answer)
            if conversation.finished or writer.stop.received:
                return


class TooLong(Struct, frozen=True):
    """A line over the limit: only its two ends are kept, where the id of a request is."""

    head: bytes
    tail: bytes


class LineBuffer:
    """Cuts bytes into lines. Of a line that is too long only the ends are kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head = self._tail = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """Yield the lines that this chunk completes."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._add(end)
            too_long = self._size > self._limit
            yield TooLong(self._head, self._tail) if too_long else b"".join(self._parts)
            self._parts.clear()
            self._size = 0
        self._add(rest)

    def _add(self, part: bytes) -> None:
        within, self._size = self._size <= self._limit, self._size + len(part)
        if self._size <= self._limit:
            self._parts.append(part)
            return
        if within:
            self._head = self._tail = b"".join(self._parts)
            self._parts.clear()
        self._head = (self._head + part[:_END_BYTES])[:_END_BYTES]
        self._tail = (self._tail + part)[-_END_BYTES:]


class StopSignal:
    """Whether a signal has told the server to stop; `fd` becomes readable when one has."""

    def __init__(self) -> None:
        self.received = False
        self.fd, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._receive)

    def _receive(self, _number: int, _frame: object) -> None:
        self.received = True


class LineWriter:
    """Writes whole lines. After a stop signal it no longer waits for a client that does not read."""

    def __init__(self, fd: int, stop: StopSignal) -> None:
        self.stop = stop
        self._fd = fd

    def write(self, line: bytes) -> None:
        """Write one line completely."""
        rest = memoryview(line)
        while rest:
            if sys.platform != "win32" and not self._is_writable():
                raise BrokenPipeError
            rest = rest[os.write(self._fd, rest[:_WRITE_BYTES]) :]

    def _is_writable(self) -> bool:
        while not self.stop.received:
            if select.select([self.stop.fd], [self._fd], [])[1]:
                return True
        return bool(select.select([], [self._fd], [], _LAST_WRITE_SECONDS)[1])


class ParentProcess:
    """The process that started us. Usually its exit closes our input, but a sibling may hold that open.

    `fds` become readable when it exits; where there are none, look again every `check_seconds`.
    """

    def __init__(self) -> None:
        self._pid = os.getppid()
        self.fds: list[int] = []
        if sys.platform == "linux" and self._pid > 1:
            with suppress(OSError):
                self.fds.append(os.pidfd_open(self._pid))
        self.check_seconds = None if self.fds or self._pid <= 1 else _PARENT_CHECK_SECONDS

    def has_exited(self) -> bool:
        """Tell whether it has exited."""
        return os.getppid() != self._pid


def selected_chunks(fd: int, stop: StopSignal, patience: Patience = lambda: None) -> Iterator[bytes]:
    """Yield the input as it arrives, until it ends, the parent exits or a signal arrives.

    After each pause in the input it yields one empty chunk, and one whenever `patience` is over.
    """
    parent, paused = ParentProcess(), True
    while not stop.received:
        limits = (parent.check_seconds if paused else _IDLE_SECONDS, patience())
        timeout = min((limit for limit in limits if limit is not None), default=None)
        ready, _, _ = select.select([fd, stop.fd, *parent.fds], [], [], timeout)
        if stop.fd in ready:
            return
        if not ready and (not paused or patience() == 0):
            paused = True
            yield b""
            continue
        paused = False
        if fd in ready:
            chunk = os.read(fd, _READ_BYTES)
            if not chunk:
                yield b"\n"  # the last line may lack its end
                return
            yield chunk
        elif parent.has_exited():
            return


def threaded_chunks(
    fd: int, stopped: Callable[[], bool], patience: Patience = lambda: None
) -> Iterator[bytes]:
    """Yield the input as a thread reads it, until it ends or `stopped` says so."""
    import queue
    import threading

    chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read_all() -> None:
        while chunk := os.read(fd, _READ_BYTES):
            chunks.put(chunk)
        chunks.put(b"")

    threading.Thread(target=read_all, daemon=True).start()
    paused = True
    while not stopped():
        try:
            chunk = chunks.get(timeout=_STOP_CHECK_SECONDS)
        except queue.Empty:
            if not paused or patience() == 0:
                paused = True
                yield b""
            continue
        paused = False
        if not chunk:
            yield b"\n"  # the last line may lack its end
            return
        yield chunk


def _private_descriptors(stdin_fd: int, stdout_fd: int) -> tuple[int, int]:
    """Move the protocol to descriptors of its own: no child reads from it, and no print writes to it."""
    try:
        os.fstat(2)
    except OSError:  # stderr is closed; without this a pipe of the protocol could get its number
        os.open(os.devnull, os.O_WRONLY)
    source, sink = stdin_fd, stdout_fd
    if stdin_fd == 0:
        source = _binary(os.dup(0))
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
    if stdout_fd == 1:
        sink = _binary(os.dup(1))
        os.dup2(2, 1)
    return source, sink


def _binary(fd: int) -> int:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(fd, os.O_BINARY)
    return fd
