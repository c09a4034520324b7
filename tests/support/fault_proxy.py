"""A network that fails on demand: forwards TCP to a server, and stalls, slows, cuts or half-closes it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class FaultProxy:
    """Listens on a port of its own. A fault holds for open and for new connections until it is mended."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._is_cut = False
        self._delay = 0.0
        self._flowing = threading.Event()
        self._flowing.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self) -> None:
        """Accept connections and what is sent on them, and pass nothing on."""
        self._flowing.clear()

    def slow(self, seconds: float) -> None:
        """Let everything that is sent, in either direction, take this long."""
        self._delay = seconds

    def cut(self) -> None:
        """Drop every connection, and those that come until it is mended."""
        with self._lock:
            self._is_cut = True
            dropped, self._pairs = self._pairs, set()
        for near, far in dropped:
            _drop(near)
            _drop(far)

    def half_close(self) -> None:
        """Send no answer any more on the open connections; what clients send still arrives."""
        with self._lock:
            for near, _ in self._pairs:
                with suppress(OSError):
                    near.shutdown(socket.SHUT_WR)

    def mend(self) -> None:
        with self._lock:
            self._is_cut = False
        self._delay = 0.0
        self._flowing.set()

    def close(self) -> None:
        self.cut()
        self._flowing.set()
        _drop(self._listener)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:  # the listener was closed
                return
            with self._lock:
                if self._is_cut:
                    _drop(near)
                    continue
            try:
                far = socket.create_connection(self._target)
            except OSError:
                _drop(near)
                continue
            with self._lock:
                self._pairs.add((near, far))
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._forward, args=(source, sink), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while chunk := source.recv(65536):
                self._flowing.wait()
                time.sleep(self._delay)
                sink.sendall(chunk)
        _drop(source)
        _drop(sink)


def _drop(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def fault_proxy(host: str, port: int) -> Iterator[FaultProxy]:
    """Return a network to a server that a test can make fail."""
    proxy = FaultProxy(host, port)
    try:
        yield proxy
    finally:
        proxy.close()
