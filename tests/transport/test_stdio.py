"""The stdio server as a process: what it does with bytes, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.echo_server import Echo
from interlock.transport.results import ServerInfo
from interlock.transport.rpc import id_at_either_end
from interlock.transport.stdio.connection import Connection
from interlock.transport.stdio.pipe import LINE_LIMIT, LineBuffer, TooLong, threaded_chunks
from support.stdio_pipe import ECHO, INITIALIZE, PATIENCE, Pipe, call, encoded, opened, readable, request

GARBAGE = {
    "no JSON": (b"hello\n", -32700),
    "half of a message": (b'{"jsonrpc":"2.0","id":1,\n', -32700),
    "bytes that are not UTF-8": (b'{"jsonrpc":"2.0","method":"\xff"}\n', -32700),
    "a lone surrogate": (b'{"jsonrpc":"2.0","method":"\\ud800"}\n', -32700),
    "an id that cannot be sent back": (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}\n', -32700),
    "an id out of range": (b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}\n', -32700),
    "endless nesting": (b"[" * 200_000 + b"\n", -32700),
    "a nested message": (b'{"a":' * 200_000 + b"1" + b"}" * 200_000 + b"\n", -32700),
    "null": (b"null\n", -32600),
    "a number": (b"42\n", -32600),
    "an empty batch": (b"[]\n", -32600),
    "an empty object": (b"{}\n", -32600),
    "another JSON-RPC": (b'{"jsonrpc":"1.0","method":"ping"}\n', -32600),
    "no version at all": (b'{"method":"ping"}\n', -32600),
    "a method that is no string": (b'{"jsonrpc":"2.0","method":7}\n', -32600),
    "a null id": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600),
    "an id that is an object": (b'{"jsonrpc":"2.0","id":{},"method":"ping"}\n', -32600),
    "an id that is true": (b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n', -32600),
}


@pytest.fixture(scope="module")
def shared() -> Pipe:
    with opened() as pipe:
        yield pipe


@pytest.mark.parametrize("kind", GARBAGE)
def test_what_is_no_message_is_refused_and_the_connection_lives_on(shared: Pipe, kind: str) -> None:
    line, code = GARBAGE[kind]
    refusal = shared.ask(line)
    assert (refusal["id"], refusal["error"]["code"]) == (None, code)
    assert shared.ask(request(1, "ping")) == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize("id", [0, -3, 2**53, 1.5, "", "seven", "ÿ😀"])
def test_an_id_comes_back_as_it_was_sent(shared: Pipe, id: object) -> None:
    assert shared.ask(request(id, "ping"))["id"] == id


def test_a_refused_request_is_named_by_its_id(shared: Pipe) -> None:
    refusal = shared.ask(b'{"jsonrpc":"2.0","id":"seven","method":"ping","params":[1]}\n')
    assert (refusal["id"], refusal["error"]["code"]) == ("seven", -32600)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of the server from /proc")
@pytest.mark.parametrize("level", ["loud", "", None, 3])
def test_only_the_levels_of_the_protocol_can_be_set(shared: Pipe, level: object) -> None:
    refused = shared.ask(request(3, "logging/setLevel", {"level": level}))
    assert refused["error"]["code"] == -32602
    assert "warning" in refused["error"]["message"]
    assert shared.ask(request(4, "logging/setLevel", {"level": "warning"}))["result"] == {}


def test_an_unknown_tool_is_an_error_of_the_protocol(shared: Pipe) -> None:
    answer = shared.ask(call(5, "nope"))
    assert answer["error"]["code"] == -32602
    assert answer["error"]["message"].startswith("Unknown tool: nope. Use one of: ")


@pytest.mark.parametrize("capabilities", ["x", [], 3, True])
def test_capabilities_are_an_object(capabilities: object) -> None:
    connection = Connection(Echo("mcp"), ServerInfo("echo", "1"))
    sent = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {}}
    (line,) = connection.receive(request(1, "initialize", sent))
    assert msgspec.json.decode(line)["error"]["code"] == -32602
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }
    (line,) = connection.receive(request(2, "tools/list", {"_meta": meta}))
    assert msgspec.json.decode(line)["error"]["code"] == -32602


def test_a_line_over_the_limit_is_refused_without_being_kept(shared: Pipe) -> None:
    before = _resident(shared.process.pid)
    shared.send(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"')
    shared.send(*[b"x" * 65536] * (6 * LINE_LIMIT // 65536))
    assert _resident(shared.process.pid) - before < 2 * LINE_LIMIT
    assert shared.ask(b'"}}\n')["error"]["code"] == -32700
    assert shared.ask(request(1, "ping"))["result"] == {}


SDK_ORDERS = {  # how the official clients write a request: the id before the parameters, or after them
    "id first": (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"id":1,"x":"', b'"}}'),
    "id last": (b'{"method":"tools/call","params":{"id":1,"x":"', b'"},"jsonrpc":"2.0","id":7}'),
}


@pytest.mark.parametrize("order", SDK_ORDERS)
def test_a_request_over_the_limit_is_refused_by_its_id(shared: Pipe, order: str) -> None:
    head, tail = SDK_ORDERS[order]
    shared.send(head)
    shared.send(*[b"x" * 65536] * (LINE_LIMIT // 65536))
    refusal = shared.ask(tail + b"\n")
    assert (refusal["id"], refusal["error"]["code"]) == (7, -32700)


@pytest.mark.parametrize(
    ("head", "tail", "id"),
    [
        (b'{ "id" : "a\\"b" , "method":"m","params":{', b"}}", 'a"b'),
        (b'{"jsonrpc":"2.0","method":"m","params":{"id":5,', b'"id":6}}', None),
        (b'{"method":"m","params":{"t":"', b'\\",\\"id\\":9}","id":8}', 8),
        (b'{"method":"m","params":{"t":"', b'"},"id":"x","jsonrpc":"2.0"} ', "x"),
        (b'{"jsonrpc":"2.0","id":3,"result":{"t":"', b'"}}', None),
        (b'[{"jsonrpc":"2.0","id":3,"method":"m"},', b'{"method":"m","id":4}]', None),
        (b"xxxx", b'"id":4}', None),
    ],
    ids=["escaped", "nested only", "in a string", "before the version", "a response", "a batch", "no JSON"],
)
def test_the_id_of_a_long_line_is_that_of_the_request_itself(head: bytes, tail: bytes, id: object) -> None:
    assert id_at_either_end(head, tail) == id


def _resident(pid: int) -> int:
    with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_long_line_under_the_limit_goes_both_ways(shared: Pipe) -> None:
    extra = {"long": "ü" * 1_000_000}
    assert shared.ask(call(1, "echo", text="", extra=extra))["result"]["structuredContent"]["extra"] == extra


def test_half_lines_windows_ends_and_blank_lines_are_fine(shared: Pipe) -> None:
    line = request(1, "ping").rstrip()
    shared.send(b"\r\n\n  \n" + line[:10])
    shared.send(line[10:] + b"\r")
    assert shared.ask(b"\n" + request(2, "ping"))["id"] == 1
    assert shared.read()["id"] == 2


def test_answers_keep_the_order_of_the_requests(shared: Pipe) -> None:
    shared.send(b"".join(call(number, "echo", text=str(number)) for number in range(300)))
    assert [shared.read()["id"] for _ in range(300)] == list(range(300))


@pytest.mark.parametrize(
    "arguments",
    [{"text": "a\0b"}, {"text": "a", "extra": {"deep": [{"k": "\0"}]}}, {"text": "a", "extra": {"k\0": 1}}],
)
def test_a_nul_in_the_arguments_is_refused(shared: Pipe, arguments: dict[str, object]) -> None:
    result = shared.ask(call(1, "echo", **arguments))["result"]
    assert result["isError"]
    assert "NUL" in result["content"][0]["text"]


def test_a_backslash_before_u0000_is_just_text(shared: Pipe) -> None:
    assert shared.ask(call(1, "echo", text="\\u0000"))["result"]["content"][0]["text"] == "\\u0000"


def test_text_is_utf8_whatever_the_locale() -> None:
    with Pipe(env={"LC_ALL": "C", "LANG": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}) as pipe:
        pipe.initialize()
        assert pipe.ask(call(1, "echo", text="grüße 🚉"))["result"]["content"][0]["text"] == "grüße 🚉"


def test_stray_prints_of_us_and_our_children_go_to_stderr() -> None:
    with opened() as pipe:
        assert pipe.ask(call(1, "noisy"))["result"]["content"][0]["text"] == "quiet"
        assert pipe.end() == 0
        assert pipe.rest() == b""
        printed = pipe.stderr.read().decode()
    assert {"stray print", "stray write", "stray child"} <= set(printed.splitlines())


def test_a_closed_stderr_does_not_let_prints_into_the_protocol() -> None:
    lines = request(1, "initialize", INITIALIZE) + call(2, "noisy") + request(3, "ping")
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, str(ECHO)]
    done = subprocess.run(command, input=lines, capture_output=True, check=True, timeout=PATIENCE)
    _, noisy, ping = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    assert (noisy["result"]["content"][0]["text"], ping["result"]) == ("quiet", {})


def test_an_exception_is_answered_with_a_reference_to_its_traceback() -> None:
    with opened() as pipe:
        text = pipe.ask(call(1, "broken"))["result"]["content"][0]["text"]
        message, reference = text.split(". Reference ")
        assert message == "broken failed: ZeroDivisionError"
        assert re.fullmatch("[0-9a-f]{8}", reference)
        error = pipe.ask(call(2, "unsendable"))["error"]
        assert error["code"] == -32603
        other = re.fullmatch("Reference ([0-9a-f]{8}) on the server's stderr", error["data"]["details"])
        assert other
        assert pipe.ask(request(3, "ping"))["result"] == {}
        assert pipe.end() == 0
        assert pipe.rest() == b""
        printed = pipe.stderr.read().decode()
    assert f"interlock: broken failed. Reference {reference}\nTraceback" in printed
    assert f"interlock: a request failed. Reference {other[1]}\nTraceback" in printed
    assert printed.count("Traceback") == 2


def test_an_expected_error_leaves_nothing_on_stderr() -> None:
    with opened() as pipe:
        assert pipe.ask(call(1, "unavailable"))["result"]["content"][0]["text"] == "expected: no disk"
        assert pipe.end() == 0
        assert pipe.stderr.read() == b""


def test_an_exception_is_answered_though_nobody_reads_stderr() -> None:
    with opened() as pipe:
        pipe.stderr.close()
        assert pipe.ask(call(1, "broken"))["result"]["isError"]
        assert pipe.ask(call(2, "echo", text="a"))["result"]["content"][0]["text"] == "a"


def test_the_end_of_the_input_is_the_end_after_the_last_answer() -> None:
    with opened() as pipe:
        pipe.send(call(1, "bulk", size=3_000_000), request(2, "ping").rstrip())
        pipe.stdin.close()
        first, second = pipe.rest().splitlines()
        assert pipe.process.wait(PATIENCE) == 0
    assert len(msgspec.json.decode(first)["result"]["content"][0]["text"]) == 3_000_000
    assert msgspec.json.decode(second)["id"] == 2


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_an_idle_server(sent: signal.Signals) -> None:
    with opened() as pipe:
        assert pipe.end(sent) == 0
        assert pipe.rest() == b""
        assert pipe.stderr.read() == b""


def test_a_signal_in_the_middle_of_an_answer_lets_it_end() -> None:
    with opened() as pipe:
        pipe.send(call(1, "bulk", size=3_000_000), call(2, "echo", text="never"))
        head = os.read(pipe.stdout.fileno(), 1)
        pipe.process.send_signal(signal.SIGTERM)
        answer, rest = (head + pipe.rest()).split(b"\n")
        assert pipe.process.wait(PATIENCE) == 0
    assert rest == b""
    assert len(msgspec.json.decode(answer)["result"]["content"][0]["text"]) == 3_000_000


def test_a_signal_ends_a_server_whose_client_reads_no_more() -> None:
    with opened() as pipe:
        pipe.send(call(1, "bulk", size=3_000_000))
        os.read(pipe.stdout.fileno(), 1)
        assert pipe.end(signal.SIGTERM) == 0


def test_a_client_that_closes_its_end_ends_the_server_quietly() -> None:
    with opened() as pipe:
        pipe.stdout.close()
        pipe.send(request(1, "ping"))
        assert pipe.process.wait(PATIENCE) == 0
        assert pipe.stderr.read() == b""


def test_an_ignored_hangup_stays_ignored() -> None:
    command = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", sys.executable, str(ECHO)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request(1, "ping"))
        assert process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        process.stdin.write(request(2, "ping"))
        assert process.stdout.readline()
        process.stdin.close()


def test_a_server_whose_parent_is_gone_ends_though_its_input_stays_open() -> None:
    source, ours = os.pipe()
    theirs, sink = os.pipe()
    start = textwrap.dedent(f"""
        import os, subprocess, sys
        subprocess.Popen([sys.executable, {str(ECHO)!r}], stdin={source}, stdout={sink})
        os.read(0, 1)
    """)
    command = [sys.executable, "-c", start]
    with subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=(source, sink)) as parent:
        os.close(sink)
        os.write(ours, request(1, "ping"))
        assert msgspec.json.decode(os.read(theirs, 4096))["id"] == 1
        parent.kill()
    ready = readable(theirs, PATIENCE)
    assert ready, "the server outlives its parent"
    assert os.read(theirs, 4096) == b""
    for fd in (source, ours, theirs):
        os.close(fd)


ALLOWED = {
    "interlock",
    "interlock.core",
    "interlock.core.values",
}
ALLOWED |= {"interlock.surfaces"}
ALLOWED |= {f"interlock.surfaces.{name}" for name in ("call", "parameters", "tool")}
ALLOWED |= {"interlock.transport", "interlock.transport.results", "interlock.transport.rpc"}
ALLOWED |= {"interlock.transport.stdio"}
ALLOWED |= {
    f"interlock.transport.stdio.{name}" for name in ("connection", "handshake", "modern", "pipe", "waiting")
}
HEAVY = {
    "asyncio",
    "click",
    "dataclasses",
    "email",
    "jsonschema_rs",
    "json",
    "logging",
    "mcp",
    "re2",
    "regex",
}
HEAVY |= {"rfc8785", "rich", "socket", "ssl", "threading", "toon_format", "yaml"}


def test_the_modules_loaded_when_tools_are_listed_are_few() -> None:
    probe = textwrap.dedent("""
        import sys
        from interlock.surfaces.tool import Surface, Tool
        from interlock.transport.stdio.pipe import serve
        from msgspec import Struct
        class Nothing(Struct): pass
        class Surface(Surface):
            name, instructions, tools = "surface", "", {"t": Tool("t", "T", Nothing, lambda p, c: None)}
        serve(Surface(), version="0")
        print(*sys.modules, sep="\\n", file=sys.stderr)
    """)
    lines = request(1, "initialize", {"protocolVersion": "2025-11-25"}) + request(2, "tools/list")
    done = subprocess.run([sys.executable, "-c", probe], input=lines, capture_output=True, check=True)
    assert len(done.stdout.splitlines()) == 2
    loaded = set(done.stderr.decode().split())
    assert {name for name in loaded if name.startswith("interlock")} == ALLOWED
    assert not loaded & HEAVY


def test_a_thread_feeds_the_loop_where_a_pipe_cannot_be_selected_on() -> None:
    source, ours = os.pipe()
    chunks = threaded_chunks(source, lambda: False)
    os.write(ours, b"one")
    assert next(chunks) == b"one"
    os.close(ours)
    assert list(chunks) == [b"\n"]
    os.close(source)


@given(st.lists(st.binary(max_size=12)), st.integers(0, 8))
def test_how_bytes_arrive_does_not_change_the_lines(chunks: list[bytes], limit: int) -> None:
    whole, pieces = LineBuffer(limit), LineBuffer(limit)
    together = list(whole.feed(b"".join(chunks)))
    assert [line for chunk in chunks for line in pieces.feed(chunk)] == together
    assert all(isinstance(line, TooLong) or len(line) <= limit for line in together)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
methods = st.sampled_from(
    ["initialize", "ping", "tools/list", "tools/call", "server/discover", "subscriptions/listen", "x"]
)
messages = st.fixed_dictionaries(
    {"jsonrpc": st.sampled_from(["2.0", "1.0"])},
    optional={
        "id": json_values,
        "method": methods | json_values,
        "params": json_values
        | st.fixed_dictionaries(
            {}, optional={"name": json_values, "arguments": json_values, "_meta": json_values}
        ),
        "result": json_values,
        "error": json_values,
    },
)


@settings(max_examples=50)
@given(st.lists(st.binary(max_size=40) | (messages | json_values).map(encoded), max_size=6))
def test_no_line_breaks_a_conversation(lines: list[bytes]) -> None:
    connection = Connection(Echo("mcp"), ServerInfo("echo", "1"))
    for line in lines:
        for answer in connection.receive(line):
            assert answer.endswith(b"\n")
            assert answer.count(b"\n") == 1
            msgspec.json.decode(answer)
    answered = connection.receive(request("still", "ping"))
    assert [msgspec.json.decode(answer)["id"] for answer in answered] == ["still"]
