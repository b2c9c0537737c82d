"""What a server counts and times, in the form that Prometheus collects.

Labels have few values, all of them known beforehand: no user, graph, key, session or raw path is ever one.
`docs/operating/observability.md` lists every metric; a test compares the two.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Iterator
from types import TracebackType

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

import hivemem
from hivemem.errors import HivememError
from hivemem.ports.observer import Event, Facts, Recalled, ToolCalled
from hivemem.surfaces.services import Services

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# A recall takes 10 to 300 ms on two cores, an upload or an import some seconds.
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_RESULTS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_STEPS = ("index", "first_stage", "fetch", "rerank")
_MODEL_CALLS = ("embed_query", "embed_passages", "rerank")
_PARTS = frozenset(("dense", "reranker", "regex"))
_CODE = re.compile(r"[a-z][a-z0-9_]{0,39}")
_MOST_CODES = 100

NO_ANSWER = "none"
"""Status of a request whose caller left before an answer began."""


class Metrics:
    """Counts for one application, in a registry of its own; an `Observer`.

    Args:
        services: Asked for the state of models and indexes at each collection.
    """

    def __init__(self, services: Services) -> None:
        self.registry = registry = _Registry()
        self._requests = Counter(
            "hivemem_http_requests", "Answered requests.", ("method", "route", "status"), registry=registry
        )
        self._request_seconds = Histogram(
            "hivemem_http_request_seconds",
            "From the first byte of a request's head to the last of its answer.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=registry,
        )
        self._in_flight = Gauge(
            "hivemem_http_requests_in_flight", "Requests being worked on.", registry=registry
        )
        self._errors = Counter(
            "hivemem_errors",
            "Calls that were answered with an error.",
            ("surface", "code", "retryable"),
            registry=registry,
        )
        self._tool_calls = Counter(
            "hivemem_mcp_tool_calls", "Calls of MCP tools.", ("tool", "outcome"), registry=registry
        )
        self._recall_results = Histogram(
            "hivemem_recall_results", "Results of a recall.", buckets=_RESULTS, registry=registry
        )
        self._recalls_empty = Counter(
            "hivemem_recalls_empty", "Recalls that found nothing relevant.", registry=registry
        )
        self._recalls_degraded = Counter(
            "hivemem_recalls_degraded",
            "Recalls in which a part did not run, or not wholly.",
            ("part",),
            registry=registry,
        )
        self._work_errors = Counter(
            "hivemem_work_errors", "Work that failed, by error code.", ("work", "code"), registry=registry
        )
        self._work_seconds = _work_histograms(registry)
        registry.register(_State(services))
        ProcessCollector(registry=registry)
        # Looking a child up by its labels takes longer than all the rest.
        self._of_request: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._codes: set[str] = set()

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus, version 0.0.4."""
        return generate_latest(self.registry)

    def request_begins(self) -> None:
        """A request came in."""
        self._in_flight.inc()

    def request_ends(
        self, *, method: str, route: str, status: int, seconds: float, error: HivememError | None
    ) -> None:
        """A request was answered, or its caller left.

        Args:
            method: As sent; unknown ones are counted as `other`.
            route: The template that matched, never the path.
            status: 0 when no answer began.
            seconds: Until the last byte.
            error: What it was answered with.
        """
        self._in_flight.dec()
        asked = (method, route, status)
        children = self._of_request.get(asked)
        if children is None:
            method = method if method in _METHODS else "other"
            asked = (method, route, status)
            children = self._of_request.setdefault(
                asked,
                (
                    self._requests.labels(method, route, str(status) if status else NO_ANSWER),
                    self._request_seconds.labels(method, route),
                ),
            )
        children[0].inc()
        children[1].observe(seconds)
        if error is not None:
            self._count_error("http", error.code, error.retryable)
        elif status >= 500:
            self._count_error("http", "internal_error", retryable=False)

    def work(self, name: str, facts: Facts) -> _Timed:
        """See `Observer.work`."""
        return _Timed(self, name)

    def note(self, event: Event) -> None:
        """See `Observer.note`."""
        match event:
            case Recalled():
                self._recall_results.observe(event.results)
                if not event.results:
                    self._recalls_empty.inc()
                for part in event.degraded:
                    self._recalls_degraded.labels(part if part in _PARTS else "other").inc()
            case ToolCalled():
                outcome = "ok" if event.error is None else self._code(event.error)
                self._tool_calls.labels(event.tool, outcome).inc()
                if event.error is not None:
                    self._count_error("mcp", event.error, event.retryable)

    def work_ended(self, name: str, seconds: float, error: BaseException | None) -> None:
        """A piece of work took `seconds`, or failed with `error`."""
        if error is not None:
            # Most failures are quick; among the times they would look like speed.
            self._work_errors.labels(name, self._code(_code_of(error))).inc()
        elif (histogram := self._work_seconds.get(name)) is not None:
            histogram.observe(seconds)

    def _count_error(self, surface: str, code: str, retryable: bool) -> None:
        self._errors.labels(surface, self._code(code), "true" if retryable else "false").inc()

    def _code(self, code: str) -> str:
        """The code as a label: codes are constants, and should one ever not be, it costs a hundred series."""
        if code not in self._codes:
            if len(self._codes) >= _MOST_CODES or not _CODE.fullmatch(code):
                return "other"
            self._codes.add(code)
        return code


class _Timed:
    """One piece of work."""

    __slots__ = ("_began", "_metrics", "_name")

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._metrics = metrics
        self._name = name

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._metrics.work_ended(self._name, time.perf_counter() - self._began, error)


def _code_of(error: BaseException) -> str:
    if isinstance(error, HivememError):
        return error.code
    return "cancelled" if isinstance(error, asyncio.CancelledError) else "unforeseen"


def _work_histograms(registry: CollectorRegistry) -> dict[str, Histogram]:
    """Name of a piece of work -> where its time goes."""
    steps = Histogram(
        "hivemem_recall_step_seconds",
        "Time of each step of a recall.",
        ("step",),
        buckets=_SECONDS,
        registry=registry,
    )
    calls = Histogram(
        "hivemem_model_call_seconds",
        "Time of each call of a model, waiting for others included.",
        ("call",),
        buckets=_SECONDS,
        registry=registry,
    )
    return {
        "recall": Histogram(
            "hivemem_recall_seconds", "Time of a recall.", buckets=_SECONDS, registry=registry
        ),
        "store.write": Histogram(
            "hivemem_store_write_seconds",
            "Time of a write transaction, waiting for others included.",
            buckets=_SECONDS,
            registry=registry,
        ),
        **{f"recall.{step}": steps.labels(step) for step in _STEPS},
        **{f"model.{call}": calls.labels(call) for call in _MODEL_CALLS},
    }


class _State(Collector):
    """What is so at the moment of a collection; between two of them it costs nothing."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def collect(self) -> Iterable[Metric]:
        executor, hot = self._services.executor, self._services.hot
        seconds = CounterMetricFamily(
            "hivemem_model_seconds", "Time in which the models computed.", labels=("kind",)
        )
        texts = CounterMetricFamily("hivemem_model_texts", "Texts that the models read.", labels=("kind",))
        for kind, done in executor.done_work.items():
            seconds.add_metric((kind,), done.seconds)
            texts.add_metric((kind,), done.texts)
        usable = GaugeMetricFamily(
            "hivemem_model_usable", "1 when the model is there, 0 when not.", labels=("model",)
        )
        usable.add_metric(("embedder",), float(executor.embedder is not None))
        usable.add_metric(("reranker",), float(executor.reranker is not None))
        version = GaugeMetricFamily("hivemem_info", "1; the version is a label.", labels=("version",))
        version.add_metric((hivemem.__version__,), 1.0)
        return (
            seconds,
            texts,
            usable,
            version,
            _gauge(
                "hivemem_model_queue_texts", "Texts that wait or are being computed.", executor.queued_texts
            ),
            _gauge("hivemem_hot_graphs", "Graphs whose index is in memory.", len(hot.graph_ids)),
            _gauge("hivemem_hot_graph_bytes", "Memory of these indexes, estimated.", hot.size_bytes),
            _counter("hivemem_hot_graph_loads", "Indexes that were loaded.", hot.loads),
            _counter("hivemem_hot_graph_evictions", "Indexes dropped to make room.", hot.evictions),
        )


def _gauge(name: str, told: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, told, value=value)


def _counter(name: str, told: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(name, told, value=value)


class _Registry(CollectorRegistry):
    """Leaves out when each counter was made: a third of all lines, of no use here."""

    def collect(self) -> Iterator[Metric]:
        for metric in super().collect():
            metric.samples = [one for one in metric.samples if not one.name.endswith("_created")]
            yield metric
