"""The two forms of log lines, the access log, and that no secret is in either."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from pathlib import Path
from types import TracebackType

import httpx2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hivemem.settings import Settings
from hivemem.surfaces.logs import FIELDS, JsonFormatter, LineFormatter, configure_logging
from hivemem.surfaces.redaction import redacted, worth_hiding
from hivemem.surfaces.request_id import request_id
from tests.surfaces.serving import REST, Server, served

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]

FORMATTERS = [LineFormatter(), JsonFormatter()]


def record(
    message: str, *arguments: object, error: BaseException | None = None, **more: object
) -> logging.LogRecord:
    info: ExcInfo | None = None if error is None else (type(error), error, error.__traceback__)
    made = logging.LogRecord("hivemem.http", logging.WARNING, __file__, 1, message, arguments, info)
    made.__dict__.update(more)
    return made


def test_a_line_of_text_has_names_and_values() -> None:
    line = LineFormatter().format(record('a "quoted"\nmessage of %s', "two lines"))
    assert re.fullmatch(
        r"time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=warning logger=hivemem\.http "
        r'message="a \\"quoted\\"\\nmessage of two lines"',
        line,
    )


def test_a_line_of_json_has_the_same() -> None:
    token = request_id.set("request-1")
    try:
        values = json.loads(JsonFormatter().format(record("a message\nof %s", "two lines")))
    finally:
        request_id.reset(token)
    assert list(values) == ["time", "level", "logger", "request_id", "message"]
    assert values["message"] == "a message\nof two lines"
    assert values["request_id"] == "request-1"
    assert values["level"] == "warning"


@pytest.mark.parametrize("formatter", FORMATTERS)
def test_a_traceback_stays_on_the_line(formatter: logging.Formatter) -> None:
    try:
        raise ValueError("with\nbreaks")
    except ValueError as error:
        line = formatter.format(record("failed", error=error))
    assert "\n" not in line
    assert "Traceback" in line and "ValueError" in line


@pytest.mark.parametrize("formatter", FORMATTERS)
def test_a_wrong_format_does_not_print_its_arguments(
    formatter: logging.Formatter, capsys: pytest.CaptureFixture[str]
) -> None:
    line = formatter.format(record("%d nodes", "hm_" + "a" * 64))
    assert "%d nodes" in line and "aaaa" not in line
    assert capsys.readouterr().err == ""


hexes = st.text("0123456789abcdef", min_size=64, max_size=64)
base64url = st.text(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", min_size=43, max_size=43
)
token68 = st.from_regex(r"[A-Za-z0-9._~+/-]{6,40}=?", fullmatch=True)
passwords = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="\x7f\x85\xa0"), min_size=6
).filter(lambda text: not any(map(str.isspace, text)))

secrets = st.one_of(
    hexes.map(lambda secret: (f"hm_{secret}", secret)),
    hexes.map(lambda secret: (f"local_{secret}", secret)),
    st.tuples(st.sampled_from(["at_", "rt_", "ac_", "inv_"]), base64url).map(
        lambda pair: (pair[0] + pair[1], pair[1])
    ),
    st.tuples(st.sampled_from(["Bearer ", "bearer ", "BEARER  "]), token68).map(
        lambda pair: (pair[0] + pair[1], pair[1])
    ),
    passwords.map(lambda secret: (f"postgresql://hivemem:{secret}@db.example.org:5432/memory", secret)),
)
surroundings = st.text(max_size=30)


@settings(max_examples=50, deadline=None)
@given(before=surroundings, secret=secrets, after=surroundings, place=st.integers(0, 4))
@example(before="x", secret=("hm_" + "0" * 64, "0" * 64), after="0", place=0)
@example(before="/p@", secret=("postgresql://u:a:b/c@d@h/x", "a:b/c@d"), after=" @", place=2)
@example(before="a://b:c@", secret=("postgresql://u:pa$$w0rd@h/x", "pa$$w0rd"), after="", place=3)
def test_no_secret_is_in_any_part_of_a_line(
    before: str, secret: tuple[str, str], after: str, place: int
) -> None:
    shown, hidden = secret
    # What stands around a secret may by chance be it.
    while hidden in before + after:
        before, after = before.replace(hidden, ""), after.replace(hidden, "")
    text = f"{before}{shown} {after}"
    cause = RuntimeError(text)
    try:
        try:
            raise cause
        except RuntimeError as error:
            raise ValueError("another") from error
    except ValueError as error:
        chained = error
    made = [
        record(text),
        record("said %s", text),
        record("failed", error=cause),
        record("failed", error=chained),
        record("failed", stack_info=f"Stack:\n{text}"),
    ][place]
    for formatter in FORMATTERS:
        line = formatter.format(made)
        assert hidden not in line
        assert json.dumps(hidden, ensure_ascii=False)[1:-1] not in line


@settings(max_examples=50, deadline=None)
@given(st.text())
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redacted(text)
    assert redacted(once) == once


@pytest.mark.parametrize(
    "text",
    [
        "user_0123456789abcdef0123 wrote chat_0123456789abcdef0123",
        "key 0123456789ab was revoked",
        "https://memory.example.org/mcp answered 503",
        "the basic idea",
        "rerank_tokens=3600 is too much",
        "mail to someone@example.org",
        "postgresql://hivemem@db:5432/memory",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text


def test_the_rest_of_an_address_stays() -> None:
    assert redacted("postgresql://me:pa:ss@db/x is down") == "postgresql://me:***@db/x is down"
    assert redacted("host=db password='it\\'s' user=me") == "host=db password=*** user=me"
    assert redacted("GET /exports/e/download?token=0123456789&x=1") == "GET /exports/e/download?token=***&x=1"
    assert redacted("Authorization: Basic dXNlcjpwYXNzd29yZA==") == "Authorization: Basic ***"


def test_keys_of_other_services_are_known_and_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, mcp = logging.getLogger(), logging.getLogger("mcp")
    kept, levels, written = root.handlers[:], (root.level, mcp.level), io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    try:
        configure_logging(
            Settings(
                data_dir=tmp_path, log_format="json", embedder_api_key="sk-of-another-service", api_key="ab"
            )
        )
        logging.getLogger("hivemem.test").warning("refused %s", "sk-of-another-service, says ab")
    finally:
        root.handlers[:] = kept
        root.setLevel(levels[0])
        mcp.setLevel(levels[1])
    assert json.loads(written.getvalue())["message"] == "refused ***, says ab"


def test_short_secrets_are_not_looked_for() -> None:
    assert worth_hiding(["", "a", "1234567", "12345678", "123456789"]) == ("123456789", "12345678")


async def test_the_access_log_names_routes_and_nothing_of_the_caller(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "hivemem.access")
    async with served(tmp_path, access_log="on") as api:
        await api.store("fact_zq")
        await api.client.get(f"{REST}/relationships/fact_zq?zq=1", headers={"x-request-id": "caller-1"})
        await api.client.get("/zq/zq?zq")
        await api.client.request("Z" * 50, "/zq")

    lines = [made for made in caplog.records if made.name == "hivemem.access"]
    fields = [getattr(made, FIELDS) for made in lines]
    assert [(one["method"], one["route"], one["status"]) for one in fields] == [
        ("POST", f"{REST}/store", 200),
        ("GET", f"{REST}/relationships/{{key}}", 200),
        ("GET", "none", 404),
        ("Z" * 10, "none", 404),
    ]
    assert fields[1]["request_id"] == "caller-1"
    assert all(one["ms"] > 0 and one["request_id"] for one in fields)
    for formatter in FORMATTERS:
        told = [formatter.format(made) for made in lines]
        assert "zq" not in "".join(told)
        assert all(one["request_id"] in line for one, line in zip(fields, told, strict=True))
    assert json.loads(JsonFormatter().format(lines[0])).keys() >= {"method", "route", "status", "ms"}


async def test_there_is_no_access_log_by_default(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hivemem.access")
    async with served(tmp_path) as api:
        await api.store("fact_a")
    assert [made for made in caplog.records if made.name == "hivemem.access"] == []


async def test_an_unforeseen_failure_is_logged_with_its_route(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    async with served(tmp_path) as api:
        monkeypatch.setattr(api.services.store, "nodes", broken)
        assert (await api.client.get(f"{REST}/relationships/fact_zq")).status_code == 500
    (made,) = [made for made in caplog.records if made.levelno == logging.ERROR]
    assert made.getMessage() == f"unhandled error on GET {REST}/relationships/{{key}}"


def test_a_server_that_logs_json_logs_nothing_else(tmp_path: Path) -> None:
    with Server(tmp_path, "--set", "log_format=json", "--set", "access_log=on") as server:
        httpx2.get(f"{server.url}/health")
        httpx2.get(f"{server.url}/metrics", headers={"host": f"{server.key}.example"})
        code, logged = server.stop()
    assert code == 0
    lines = [json.loads(line) for line in logged.splitlines()]
    accesses = [line for line in lines if line["logger"] == "hivemem.access"]
    assert [(line["route"], line["status"]) for line in accesses] == [("/health", 200), ("none", 421)]
    assert server.key not in logged
