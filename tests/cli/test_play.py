"""`echelon play` and its server."""

import contextlib
import http.client
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from cli.test_dispatch import fail
from echelon_env.cli import main, play_server
from echelon_env.cli.play_server import MAX_CONNECTIONS, PlayServer
from echelon_env.engine.kernels import BackendError
from echelon_env.replays import Game


@pytest.fixture(scope="module")
def game():
    return Game("duel-open", opponent="novice")


@contextlib.contextmanager
def running(served):
    with served as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def server(game):
    with running(PlayServer(game)) as server:
        yield server


def connect(server):
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=60)


def open_page(server):
    """A connection that lasts as long as its page."""
    page = connect(server)
    page.sendall(f"GET /{server.token}/alive HTTP/1.0\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
    assert page.recv(1_000)
    return page


def ask(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def test_the_page_and_its_battles(server, game):
    response, body = ask(server, f"/{server.token}/")
    assert (response.status, body.decode()) == (200, game.page(1, loads=True))
    headers = ("Cache-Control", "X-Frame-Options", "Referrer-Policy", "X-Content-Type-Options", "Server")
    assert [response.headers[name].split()[0] for name in headers] == [
        *("no-store", "DENY", "no-referrer", "nosniff", "echelon")
    ]
    for number in (1, 2, 1):
        response, body = ask(server, f"/{server.token}/battles/{number}")
        assert (response.status, body) == (200, game.start(number))
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(server, f"/{server.token}/", method)[0].status == 501


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {}, 403),
        ("/battles/1", {}, 403),
        ("/wrong-token/", {}, 403),
        ("/{token}", {}, 403),
        ("/é{token}/", {}, 403),
        ("/{token}/", {"Host": "example.org"}, 403),
        ("/{token}/", {"Host": "example.org:{port}"}, 403),
        ("/{token}/", {"Origin": "http://example.org"}, 403),
        ("/{token}/", {"Origin": "null"}, 403),
        ("/{token}/", {"Origin": "http://127.0.0.1:{port}"}, 200),
        ("/{token}/", {"Host": "localhost:{port}", "Origin": "http://localhost:{port}"}, 200),
        ("/{token}/battles/1048576", {}, 404),
        ("/{token}/battles/-1", {}, 404),
        ("/{token}/battles/99999999999999999999", {}, 404),
        ("/{token}/../../etc/passwd", {}, 404),
        ("/{token}/alive/", {}, 404),
    ],
)
def test_who_is_answered(server, path, headers, status):
    def fill(text):
        return text.format(token=server.token, port=server.server_port)

    head = "".join(f"{name}: {fill(value)}\r\n" for name, value in headers.items())
    host = "" if "Host" in headers else f"Host: 127.0.0.1:{server.server_port}\r\n"
    with connect(server) as connection:
        connection.sendall(f"GET {fill(path)} HTTP/1.0\r\n{host}{head}\r\n".encode())
        assert int(connection.recv(100).split()[1]) == status


STRANGERS = {
    "idle": b"",
    "half of the headers": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    "half a body": b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc",
    "kept alive": b"GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\n",
}


@pytest.mark.parametrize("sent", STRANGERS.values(), ids=STRANGERS)
def test_strangers_do_not_keep_the_page_out(server, sent):
    with contextlib.ExitStack() as opened:
        page = opened.enter_context(open_page(server))
        strangers = [opened.enter_context(connect(server)) for _ in range(200)]
        for stranger in strangers:
            with contextlib.suppress(ConnectionError):  # it has been ended
                stranger.sendall(sent)
        assert ask(server, f"/{server.token}/")[0].status == 200
        if b"\r\n\r\n" not in sent:  # a whole head has been answered
            for stranger in strangers[2 - MAX_CONNECTIONS :]:  # beside the page and this request: none has timed out
                stranger.setblocking(False)
                with pytest.raises(BlockingIOError):
                    stranger.recv(1)
        for stranger in strangers[:-MAX_CONNECTIONS]:
            with contextlib.suppress(ConnectionResetError):
                while stranger.recv(1_000):
                    pass  # the answer to a request without the token
        assert page.recv(1_000) and not server.ending.is_set()


def test_pages_are_not_ended_for_others(game, monkeypatch):
    monkeypatch.setattr(play_server, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(play_server, "BEAT", 0.05)
    with running(PlayServer(game)) as server:
        pages = [open_page(server) for _ in range(2)]
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            ask(server, f"/{server.token}/")
        assert all(page.recv(1_000) for page in pages)
        for page in pages:
            page.close()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                assert ask(server, f"/{server.token}/")[0].status == 200
                break
            except (ConnectionError, http.client.HTTPException):
                time.sleep(0.05)  # the closed pages are counted out soon
        else:
            pytest.fail("the server does not answer any more")


def test_a_browser_that_waits_for_the_page_gets_it(monkeypatch):
    servers, opened = [], []

    def serve(*args):
        servers.append(PlayServer(*args))
        return servers[0]

    def browse(url):
        server = servers[0]
        opened.append((url, ask(server, f"/{server.token}/")[0].status))
        server.shutdown()

    monkeypatch.setattr("webbrowser.open", browse)
    monkeypatch.setattr("echelon_env.cli.play.PlayServer", serve)
    assert main(["play", "duel-open", "--opponent", "novice"]) == 0
    assert opened == [(servers[0].url, 200)]


def test_the_server_ends_with_its_last_page(game, monkeypatch):
    monkeypatch.setattr(play_server, "GRACE", 0.3)
    monkeypatch.setattr(play_server, "BEAT", 0.05)
    with PlayServer(game) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        pages = [open_page(server) for _ in range(2)]
        pages[0].close()
        thread.join(1.5)
        assert thread.is_alive()
        pages[1].close()
        thread.join(60)
        assert not thread.is_alive()


def test_ctrl_c_ends_it():
    command = [
        sys.executable,
        "-c",
        "import sys; from echelon_env.cli import main; sys.exit(main())",
        "play",
        "duel-open",
        "--no-browser",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        if not line:
            pytest.fail(process.stderr.read())
        assert re.fullmatch(r"Playing at http://127\.0\.0\.1:\d+/[\w-]{22}/\n", line)
        process.stdout.readline()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stderr.read() == ""


def test_a_page_is_written_and_none_is_overwritten(tmp_path, capsys):
    path = tmp_path / "game.html"
    command = ["play", "duel-open", "--opponent", "idle", "--html", str(path), "--maps", "2", "--seed", "3"]
    assert main(command) == 0
    assert capsys.readouterr().out == f"wrote {path}: open it in a browser\n"
    assert path.read_text() == Game("duel-open", opponent="idle", seed=3).page(2)
    assert main(command) == 0
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["no-scenario"], "no-scenario"),
        (["--opponent", "expret"], "did you mean 'expert'"),
        (["--as", "tank"], "unknown mech 'tank'"),
        (["--port", "70000"], "--port: expected 0 to 65,535, got 70000"),
        (["--seed", "-3"], "--seed: expected an integer of at least 0, got '-3'"),
        (["--maps", "2000", "--html", "x.html"], "maps: expected at most 1,000"),
        (["--maps", "2"], "--maps: the page of a server has as many as are played"),
        (["--html", "."], "--html: expected a file, got the folder ."),
        (["--html", "none/x.html"], "none/x.html: No such file or directory"),
        (["--opponent", "random"], "unknown opponent 'random': a player for evaluations"),
        (["--opponent", "policy:nothing-here"], "nothing-here"),
    ],
)
def test_bad_requests_are_refused_in_one_line(options, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in fail(["play", *options, "--no-browser"], capsys)
    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_and_a_missing_module_are_named(server, capsys, monkeypatch):
    taken = ["play", "duel-open", "--no-browser", "--port", str(server.server_port)]
    assert f"--port {server.server_port}: Address already in use" in fail(taken, capsys)

    def refuse():
        raise BackendError("no WebAssembly module: it is not there")

    monkeypatch.setattr("echelon_env.replays.page.browser_module", refuse)
    assert fail(taken[:-2], capsys) == "echelon: no WebAssembly module: it is not there\n"
