"""What `/metrics` counts, and that its series stay few."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hivemem.errors import HivememError, Overloaded, Unavailable
from hivemem.ports.observer import Observers, Recalled
from hivemem.surfaces.observability.metrics import Metrics
from hivemem.surfaces.rest.app import build_app
from tests.observability.exposition import names, scraped, values
from tests.surfaces.serving import REST, Served, served

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operating" / "observability.md"


async def test_requests_are_counted_by_template_method_and_status(api: Served) -> None:
    await api.store("fact_a")
    await api.store("fact_b")
    await api.client.get(f"{REST}/relationships/fact_a")
    await api.client.get(f"{REST}/relationships/fact_b")
    await api.client.get("/no/such/path")
    await api.anonymous.post(f"{REST}/recall", json={"query": "x"})

    counted = await values(api, "hivemem_http_requests_total")

    assert counted == {
        ("POST", f"{REST}/store", "200"): 2,
        ("GET", f"{REST}/relationships/{{key}}", "200"): 2,
        ("GET", "none", "404"): 1,
        ("POST", f"{REST}/recall", "401"): 1,
    }
    times = await values(api, "hivemem_http_request_seconds_count")
    assert times["POST", f"{REST}/store"] == 2
    assert times["GET", "/metrics"] == 1


async def test_methods_that_a_caller_makes_up_are_one(api: Served) -> None:
    for method in ("BREW", "WHEN", "PROPFIND"):
        await api.client.request(method, f"{REST}/recall")
    counted = await values(api, "hivemem_http_requests_total")
    assert counted == {("other", f"{REST}/recall", "405"): 3}


async def test_a_scrape_is_in_flight_alone(api: Served) -> None:
    await api.store("fact_a")
    assert await values(api, "hivemem_http_requests_in_flight") == {(): 1}


async def test_refusals_of_the_edge_are_counted(api: Served) -> None:
    await api.client.get("/health", headers={"host": "evil.example"})
    assert (await values(api, "hivemem_http_requests_total"))["GET", "none", "421"] == 1
    assert await values(api, "hivemem_errors_total") == {("host_not_allowed", "false", "http"): 1}


async def test_a_recall_tells_its_steps_and_results(api: Served) -> None:
    await api.store("fact_cat", "The cat of the neighbours is called Mimi.")
    found = (await api.post("recall", {"query": "cat of the neighbours"})).json()["count"]
    await api.post("recall", {"query": "zebra crossing"})
    await api.post("recall", {"query": " "})

    assert found == 1
    assert await values(api, "hivemem_recall_seconds_count") == {(): 2}
    steps = await values(api, "hivemem_recall_step_seconds_count")
    assert steps == {(step,): 2 for step in ("index", "first_stage", "fetch", "rerank")}
    assert await values(api, "hivemem_recall_results_count") == {(): 2}
    assert await values(api, "hivemem_recall_results_sum") == {(): 1}
    assert await values(api, "hivemem_recalls_empty_total") == {(): 1}
    assert await values(api, "hivemem_recalls_degraded_total") == {}
    assert await values(api, "hivemem_work_errors_total") == {("validation_error", "recall"): 1}


async def test_a_recall_without_a_part_is_counted_as_degraded(api: Served) -> None:
    await api.store("fact_cat", "The cat of the neighbours is called Mimi.")
    api.services.executor.use_embedder(None, "the file is missing")
    assert (await api.post("recall", {"query": "cat"})).json()["_search_meta"]["degraded"]
    assert await values(api, "hivemem_recalls_degraded_total") == {("dense",): 1}
    assert (await values(api, "hivemem_model_usable"))[("embedder",)] == 0


async def test_models_tell_their_texts_and_time(api: Served) -> None:
    await api.store("fact_cat", "The cat of the neighbours is called Mimi.")
    await api.post("recall", {"query": "cat"})
    # The worker counts a turn after it has answered; the next turn comes after that.
    await api.services.executor.embed_query("another")

    texts = await values(api, "hivemem_model_texts_total")
    assert texts[("passages",)] == 1
    assert texts[("query",)] >= 1
    assert texts[("pairs",)] == 0
    assert (await values(api, "hivemem_model_seconds_total"))[("passages",)] > 0
    calls = await values(api, "hivemem_model_call_seconds_count")
    assert calls == {("embed_query",): 2, ("embed_passages",): 1, ("rerank",): 0}
    assert await values(api, "hivemem_model_queue_texts") == {(): 0}


async def test_writes_and_indexes_are_counted(api: Served) -> None:
    written = (await values(api, "hivemem_store_write_seconds_count"))[()]
    await api.store("fact_a")
    await api.store("fact_b")
    await api.post("recall", {"query": "memory"})

    assert (await values(api, "hivemem_store_write_seconds_count"))[()] == written + 2
    assert await values(api, "hivemem_hot_graphs") == {(): 1}
    assert await values(api, "hivemem_hot_graph_loads_total") == {(): 1}
    assert (await values(api, "hivemem_hot_graph_bytes"))[()] == api.services.hot.size_bytes > 0


async def test_calls_of_tools_are_counted_by_outcome(api: Served) -> None:
    async def call(name: str, **arguments: object) -> None:
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        }
        assert (await api.client.post("/mcp", json=body)).status_code == 200

    await call("hm_recall", query="cat")
    await call("hm_recall", query="")
    await call("hm_made_up_by_a_caller")

    assert await values(api, "hivemem_mcp_tool_calls_total") == {
        ("ok", "hm_recall"): 1,
        ("validation_error", "hm_recall"): 1,
        ("unknown_tool", "unknown"): 1,
    }
    errors = await values(api, "hivemem_errors_total")
    assert errors == {("validation_error", "false", "mcp"): 1, ("unknown_tool", "false", "mcp"): 1}


async def test_answers_that_ask_to_try_again_are_told_apart(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(*_: object, **__: object) -> None:
        raise Unavailable("the database is busy; try again.")

    monkeypatch.setattr(api.services.store, "nodes", busy)
    assert (await api.post("nodes", {"keys": ["fact_a"]})).status_code == 503
    assert await values(api, "hivemem_errors_total") == {("unavailable", "true", "http"): 1}


async def test_an_unforeseen_failure_is_an_internal_error(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(api.services.store, "nodes", broken)
    assert (await api.post("nodes", {"keys": ["fact_a"]})).status_code == 500
    assert await values(api, "hivemem_errors_total") == {("internal_error", "false", "http"): 1}


async def test_nothing_that_a_caller_chose_is_a_label(api: Served) -> None:
    marked = [f"zq{number}" for number in range(6)]
    await api.store(f"fact_{marked[0]}", f"About {marked[1]}.", session_id=marked[2])
    await api.post("recall", {"query": marked[3], "session_id": marked[4]})
    await api.client.get(f"/{marked[5]}?{marked[0]}={marked[1]}", headers={"x-request-id": "zq-zq-zq-zq"})
    await api.client.request("ZQMETHOD", "/health")
    text = await scraped(api)
    assert "zq" not in text.lower()
    assert api.key not in text


async def test_a_hundred_nodes_make_as_many_series_as_one(api: Served) -> None:
    async def read(number: int) -> None:
        await api.store(f"fact_{number}")
        await api.client.get(f"{REST}/relationships/fact_{number}")
        await api.post("recall", {"query": f"fact {number}"})
        await scraped(api)

    await read(0)
    before = len((await scraped(api)).splitlines())
    for number in range(1, 20):
        await read(number)
    assert len((await scraped(api)).splitlines()) == before


async def test_codes_that_are_none_of_ours_share_a_series(api: Served) -> None:
    metrics = Metrics(api.services)
    for number in range(300):
        with pytest.raises(HivememError), metrics.work("recall", {}):
            raise HivememError("failed", code=f"made_up_{number}")
    with pytest.raises(HivememError), metrics.work("recall", {}):
        raise HivememError("failed", code='"; not a code')
    series = re.findall(r"^hivemem_work_errors_total\{.*", metrics.text().decode(), re.MULTILINE)
    assert len(series) == 101
    assert 'hivemem_work_errors_total{code="other",work="recall"} 201.0' in series


async def test_two_applications_count_for_themselves(tmp_path: Path) -> None:
    async with served(tmp_path / "one") as one, served(tmp_path / "two") as two:
        await one.store("fact_a")
        await one.post("recall", {"query": "memory"})
        assert await values(one, "hivemem_recall_seconds_count") == {(): 1}
        assert await values(two, "hivemem_recall_seconds_count") == {(): 0}
        assert set(await values(two, "hivemem_http_requests_total")) == {("GET", "/metrics", "200")}


async def test_an_application_that_ended_is_told_nothing_more(tmp_path: Path) -> None:
    async with served(tmp_path) as api:
        app = build_app(api.services)
        async with app.router.lifespan_context(app):
            pass
        with api.services.observers.work("recall"):
            pass
        assert await values(api, "hivemem_recall_seconds_count") == {(): 1}


async def test_the_page_lists_what_is_exposed(api: Served) -> None:
    await api.post("recall", {"query": "cat"})
    exposed = names(await scraped(api))
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert dict(rows) == exposed
    assert len(rows) == len(exposed)


async def test_the_answer_says_its_format(api: Served) -> None:
    response = await api.anonymous.get("/metrics")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "_created" not in response.text


def test_work_that_nobody_sees_is_done_all_the_same() -> None:
    observers = Observers()
    observers.note(Recalled(results=1, degraded=()))
    with pytest.raises(Overloaded), observers.work("recall"):
        raise Overloaded("full")


async def test_several_see_the_same_work(api: Served) -> None:
    seen = [Metrics(api.services), Metrics(api.services)]
    observers = Observers()
    for metrics in seen:
        observers.add(metrics)
    with observers.work("recall"):
        pass
    observers.remove(seen[1])
    with observers.work("recall"):
        pass
    counts = [re.search(r"^hivemem_recall_seconds_count (.*)$", one.text().decode(), re.M) for one in seen]
    assert [count and count[1] for count in counts] == ["2.0", "1.0"]
