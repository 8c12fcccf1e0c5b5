"""Servers of pages, for browsers on this machine that know the token; that of a game has its page and battles."""

from __future__ import annotations

import abc
import contextlib
import functools
import hmac
import re
import secrets
import socket
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from echelon_env.replays.game import MAX_STARTS, Game

HOST = "127.0.0.1"
MAX_CONNECTIONS = 16
GRACE = 10.0
"""s until the server ends after its last page was closed; a page that is loaded again needs less."""
BEAT = 1.0
"""s between the bytes that show whether a page is still open."""
HTML = "text/html; charset=utf-8"
_TOKEN_BYTES = 16
_NUMBER = re.compile(r"battles/(\d{1,7})")


class PageServer(ThreadingHTTPServer, abc.ABC):
    """Serves pages, its `contents`, on 127.0.0.1. `serve_forever` returns when the last page is closed.

    It answers only requests that name this server as their host and this server or nothing as their origin, and whose
    path begins with the token. At most `MAX_CONNECTIONS` are open at once. A further one takes the place of the oldest
    one without such a request, so strangers who are idle or slow do not keep the page out.

    Raises OSError if the port is taken.
    """

    daemon_threads = True
    request_queue_size = 256  # a connection that finds the queue full tries again a second later

    def __init__(self, port: int = 0) -> None:
        self.ending = threading.Event()
        super().__init__((HOST, port), _Handler)
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.url = f"http://{HOST}:{self.server_port}/{self.token}/"
        """The page's address, with the token."""
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._strangers: dict[socket.socket, None] = {}  # connections without a valid request, the oldest first
        self._pages, self._counting = 0, threading.Lock()

    @abc.abstractmethod
    def contents(self, path: str) -> tuple[bytes, str] | None:
        """The bytes at a path after the token, and their type; None if there is nothing. Several threads call it."""

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread. If there are too many, end the oldest stranger's one or else this one."""
        if not self._free.acquire(blocking=False):
            if not self._end_oldest_stranger():
                self.shutdown_request(request)
                return
            self._free.acquire()
        with self._counting:
            self._strangers[request] = None
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, and count it out."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.keep(request)
            self._free.release()

    def keep(self, request: socket.socket) -> None:
        """From now on a connection does not make room for others."""
        with self._counting:
            self._strangers.pop(request, None)

    def _end_oldest_stranger(self) -> bool:
        with self._counting:
            oldest = next(iter(self._strangers), None)
            if oldest is None:
                return False
            del self._strangers[oldest]
        with contextlib.suppress(OSError):  # it has just ended
            oldest.shutdown(socket.SHUT_RDWR)
        return True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error, unless the connection has ended, which a browser may do at any time."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def page_opened(self) -> None:
        """A page is open."""
        with self._counting:
            self._pages += 1

    def page_closed(self) -> None:
        """A page was closed. Without another one the server ends soon."""
        with self._counting:
            self._pages -= 1
        timer = threading.Timer(GRACE, self._end_without_pages)
        timer.daemon = True
        timer.start()

    def _end_without_pages(self) -> None:
        with self._counting:
            if self._pages == 0 and not self.ending.is_set():
                self.ending.set()
                self.shutdown()

    def server_close(self) -> None:
        """Close the socket. Pages learn of it."""
        self.ending.set()
        super().server_close()


class PlayServer(PageServer):
    """Serves a game. Its battles are made one at a time. Raises as `PageServer` and `Game.page`."""

    def __init__(self, game: Game, port: int = 0) -> None:
        self.page = game.page(1, loads=True).encode()
        """The page."""
        super().__init__(port)
        self._game = game
        self._making = threading.Lock()

    @functools.lru_cache(maxsize=8)  # noqa: B019 - a process has one server
    def battle(self, number: int) -> bytes:
        """The start of a battle."""
        return self._game.start(number)

    def contents(self, path: str) -> tuple[bytes, str] | None:
        """As `PageServer.contents`."""
        found = _NUMBER.fullmatch(path)
        with self._making:
            if path == "":
                return self.page, HTML
            if found and int(found[1]) < MAX_STARTS:
                return self.battle(int(found[1])), "application/octet-stream"
        return None


class _Handler(BaseHTTPRequestHandler):
    server: PageServer

    def do_GET(self) -> None:
        """Answer a request."""
        hosts = [f"{name}:{self.server.server_port}" for name in (HOST, "localhost")]
        host, origin = self.headers.get("Host"), self.headers.get("Origin")
        prefix = f"/{self.server.token}/"
        known = hmac.compare_digest(self.path[: len(prefix)].encode(), prefix.encode())
        path = self.path[len(prefix) :]
        if host not in hosts or origin not in (None, f"http://{host}") or not known:
            expected = f"Expected the address that was printed, with the port {self.server.server_port}.\n"
            self._send(HTTPStatus.FORBIDDEN, expected.encode(), "text/plain")
            return
        self.server.keep(self.connection)
        if path == "alive":
            self._stay()
        elif found := self.server.contents(path):
            self._send(HTTPStatus.OK, *found)
        else:
            self._send(HTTPStatus.NOT_FOUND, b"There is nothing at this address.\n", "text/plain")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self._head(status, kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _head(self, status: HTTPStatus, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")

    def _stay(self) -> None:
        """Send a byte now and then, until the page is closed or the server ends."""
        self.server.page_opened()
        try:
            self._head(HTTPStatus.OK, "application/octet-stream")
            self.end_headers()
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while not self.server.ending.wait(BEAT):
                self.wfile.write(b".")
        except OSError:
            pass  # the page was closed
        finally:
            self.server.page_closed()

    def version_string(self) -> str:
        """The server's name, without versions."""
        return "echelon"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
