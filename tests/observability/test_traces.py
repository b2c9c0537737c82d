"""Spans of requests and of the work inside, and that nothing is sent unless hivemem is told to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from hivemem.errors import InvalidInput
from hivemem.surfaces.observability import telemetry, watching
from tests.observability.collector import Collector
from tests.surfaces.serving import REST, Served, Server, bearer, environment, served

# What a shell might have for other programs.
FOREIGN = {
    "OTEL_PYTHON_TRACER_PROVIDER": "sdk_tracer_provider",
    "OTEL_TRACES_EXPORTER": "otlp",
    "OTEL_METRICS_EXPORTER": "otlp",
    "OTEL_LOGS_EXPORTER": "otlp",
    "OTEL_SERVICE_NAME": "another-program",
    "OTEL_BSP_SCHEDULE_DELAY": "10",
}


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    kept = InMemorySpanExporter()

    def provider() -> TracerProvider:
        made = TracerProvider(shutdown_on_exit=False)
        made.add_span_processor(SimpleSpanProcessor(kept))
        return made

    monkeypatch.setattr(telemetry, "ExportingProvider", provider)
    return kept


@pytest.fixture
async def traced(exporter: InMemorySpanExporter, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path, telemetry="on") as api:
        await api.store("fact_zq", "The cat of zq is called Mimi.")
        exporter.clear()
        yield api


def tree(exporter: InMemorySpanExporter) -> dict[str, str | None]:
    """Name of each span -> name of the span that it is part of."""
    spans = exporter.get_finished_spans()
    by_id = {span.context.span_id: span.name for span in spans}
    return {span.name: by_id.get(span.parent.span_id) if span.parent else None for span in spans}


def named(exporter: InMemorySpanExporter, name: str) -> ReadableSpan:
    (span,) = [span for span in exporter.get_finished_spans() if span.name == name]
    return span


async def test_a_recall_has_its_steps_and_model_calls(traced: Served, exporter: InMemorySpanExporter) -> None:
    await traced.post("recall", {"query": "zq cat"})
    assert tree(exporter) == {
        f"POST {REST}/recall": None,
        "recall": f"POST {REST}/recall",
        "model.embed_query": "recall",
        "recall.index": "recall",
        "recall.first_stage": "recall",
        "recall.fetch": "recall",
        "recall.rerank": "recall",
    }
    assert len({span.context.trace_id for span in exporter.get_finished_spans()}) == 1


async def test_a_write_has_its_model_call_and_transaction(
    traced: Served, exporter: InMemorySpanExporter
) -> None:
    await traced.store("fact_zq2", "Another zq.")
    assert tree(exporter) == {
        f"POST {REST}/store": None,
        "model.embed_passages": f"POST {REST}/store",
        "store.write": f"POST {REST}/store",
    }
    assert named(exporter, "store.write").attributes == {"hivemem.nodes": 1}


async def test_a_tool_call_is_part_of_its_request_whatever_its_caller_traces(
    traced: Served, exporter: InMemorySpanExporter
) -> None:
    meta = {"traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01"}
    arguments = {"name": "hm_recall", "arguments": {"query": "zq"}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": arguments}
    assert (await traced.client.post("/mcp", json=body)).status_code == 200
    assert tree(exporter)["recall"] == "POST /mcp"
    assert tree(exporter)["POST /mcp"] is None


async def test_a_request_is_named_by_its_route(traced: Served, exporter: InMemorySpanExporter) -> None:
    await traced.client.get(f"{REST}/relationships/fact_zq?limit=5")
    span = named(exporter, f"GET {REST}/relationships/{{key}}")
    assert span.kind is SpanKind.SERVER
    assert span.attributes == {
        "http.request.method": "GET",
        "http.route": f"{REST}/relationships/{{key}}",
        "http.response.status_code": 200,
    }
    assert span.status.status_code is StatusCode.UNSET


async def test_a_trace_of_the_caller_goes_on(traced: Served, exporter: InMemorySpanExporter) -> None:
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    await traced.client.get("/health", headers={"traceparent": f"00-{trace}-{parent}-01"})
    span = named(exporter, "GET /health")
    assert f"{span.context.trace_id:032x}" == trace
    assert span.parent is not None and f"{span.parent.span_id:016x}" == parent


async def test_failures_have_a_code_and_no_message(traced: Served, exporter: InMemorySpanExporter) -> None:
    await traced.post("recall", {"query": " ", "session_id": "zq"})
    span = named(exporter, "recall")
    assert span.attributes == {"error.type": "validation_error"}
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None
    request = named(exporter, f"POST {REST}/recall")
    assert request.attributes is not None and request.attributes["error.type"] == "validation_error"
    assert request.status.status_code is StatusCode.UNSET


async def test_an_unforeseen_failure_has_the_name_of_its_class(
    traced: Served, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("zq")

    monkeypatch.setattr(traced.services.recall, "recall", broken)
    assert (await traced.post("recall", {"query": "zq"})).status_code == 500
    assert named(exporter, "recall").attributes == {"error.type": "ZeroDivisionError"}
    assert named(exporter, f"POST {REST}/recall").status.status_code is StatusCode.ERROR


async def test_spans_hold_nothing_of_the_caller(traced: Served, exporter: InMemorySpanExporter) -> None:
    await traced.store("fact_zq3", "About zq.", session_id="zq")
    await traced.post("recall", {"query": "zq", "session_id": "zq"})
    await traced.client.get("/zq?zq=zq")
    await traced.client.request("ZQ", "/health")
    await traced.post("forget", {"key": "zq"})
    told = "".join(span.to_json() for span in exporter.get_finished_spans())
    assert "zq" not in told.lower()
    assert traced.key not in told
    assert traced.services.store is not None and (await _graph(traced)) not in told


async def _graph(api: Served) -> str:
    return (await api.services.access.local_principal()).graph_id


def test_packages_that_are_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "hivemem.surfaces.observability.telemetry", raising=False)
    monkeypatch.delattr("hivemem.surfaces.observability.telemetry", raising=False)
    for module in [name for name in sys.modules if name.startswith("opentelemetry.sdk")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    with pytest.raises(InvalidInput, match=r"opentelemetry\.sdk\.resources.*hivemem\[telemetry\]"):
        watching._open_traces()  # pyright: ignore[reportPrivateUsage]


def test_a_server_sends_its_spans_where_the_variables_say(tmp_path: Path) -> None:
    with Collector() as collector:
        variables = {"HIVEMEM_TELEMETRY": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        with Server(tmp_path, **variables) as server:
            headers = bearer(server.key)
            stored = {"key": "fact_zq", "description": "The cat is called Mimi."}
            httpx2.post(f"{server.url}{REST}/store", json=stored, headers=headers).raise_for_status()
            httpx2.post(
                f"{server.url}{REST}/recall", json={"query": "cat"}, headers=headers
            ).raise_for_status()
            code, logged = server.stop()
        assert code == 0, logged
        spans = {span.name: span for span in collector.spans}
    assert {f"POST {REST}/store", "store.write", f"POST {REST}/recall", "recall.fetch"} <= set(spans)
    assert spans["recall"].parent_span_id == spans[f"POST {REST}/recall"].span_id
    assert not any("fact_zq" in str(span) or "Mimi" in str(span) for span in collector.spans)
    resource = collector.requests[0].resource_spans[0].resource
    told = {one.key: one.value.string_value for one in resource.attributes}
    assert told["service.name"] == "hivemem"


def test_a_collector_that_is_down_costs_no_request_and_no_clean_end(tmp_path: Path) -> None:
    with Collector() as collector:
        url = collector.url
    variables = {"HIVEMEM_TELEMETRY": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": url}
    with Server(tmp_path, **variables) as server:
        for _ in range(3):
            httpx2.get(f"{server.url}/health").raise_for_status()
        code, logged = server.stop()
    assert code == 0
    assert "opentelemetry.exporter" in logged and "Finished server process" in logged


def test_a_server_that_is_not_told_to_connects_to_nobody(tmp_path: Path) -> None:
    with Collector() as collector:
        variables = {**FOREIGN, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        with Server(tmp_path, **variables) as server:
            headers = bearer(server.key)
            asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            for _ in range(3):
                httpx2.post(f"{server.url}/mcp", json=asked, headers=headers).raise_for_status()
                httpx2.post(
                    f"{server.url}{REST}/recall", json={"query": "cat"}, headers=headers
                ).raise_for_status()
            code, logged = server.stop()
        assert code == 0, logged
        assert collector.connections == 0


def test_without_the_setting_the_exporter_is_not_even_loaded(tmp_path: Path) -> None:
    program = """
import asyncio, sys
from pathlib import Path
from tests.surfaces.serving import served

async def main():
    async with served(Path(sys.argv[1])) as api:
        await api.store("fact_a")
        await api.post("recall", {"query": "memory"})
    print([name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))])

asyncio.run(main())
"""
    variables = {name: value for name, value in FOREIGN.items() if name != "OTEL_PYTHON_TRACER_PROVIDER"}
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=environment(**variables, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9"),
        cwd=Path(__file__).resolve().parents[2],
    )
    assert ran.stdout.strip() == "[]"
