"""A connection that can be cut: forwards TCP to a server, drops all of it at once, and forwards again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class CutConnection:
    """Listens on a port of its own. While it is cut, whoever connects is dropped at once."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Drop every connection, and those that come until it is mended."""
        with self._lock:
            self._is_cut = True
            dropped, self._open = self._open, set()
        for each in dropped:
            _drop(each)

    def mend(self) -> None:
        with self._lock:
            self._is_cut = False

    def close(self) -> None:
        self.cut()
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
                self._open |= {near, far}
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=_forward, args=(source, sink), daemon=True).start()


def _forward(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(65536):
            sink.sendall(chunk)
    _drop(source)
    _drop(sink)


def _drop(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def cuttable(host: str, port: int) -> Iterator[CutConnection]:
    """Return a connection to a server that a test can cut."""
    connection = CutConnection(host, port)
    try:
        yield connection
    finally:
        connection.close()
