"""Traces for OpenTelemetry: only with the setting `telemetry`, and never with contents.

The spans have a provider of their own. The global one stays as it is, an empty one: libraries that know
OpenTelemetry, such as the MCP SDK, describe spans with messages that may quote a caller. Variables named
`OTEL_...` are read by the exporter. While the setting is off, this module is not even loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextvars import ContextVar
from types import TracebackType

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import hivemem
from hivemem.errors import HivememError
from hivemem.ports.observer import Event, Facts

_PARENT_HEADERS = frozenset((b"traceparent", b"tracestate"))
_LAST_SECONDS = 2.0
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))

# Not the library's own context: the MCP SDK puts spans there that are never recorded.
_around: ContextVar[Context | None] = ContextVar("hivemem_span", default=None)


class Traces:
    """Makes spans of requests and of the work inside them; an `Observer`.

    Args:
        provider: Where spans go.
    """

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("hivemem", hivemem.__version__)

    def request(self, headers: Iterable[tuple[bytes, bytes]]) -> RequestSpan:
        """Begin the span of a request, as part of the trace that its `traceparent` names."""
        sent = {name.decode(): value.decode("latin-1") for name, value in headers if name in _PARENT_HEADERS}
        parent = TraceContextTextMapPropagator().extract(sent, Context()) if sent else Context()
        return RequestSpan(self._tracer, parent)

    def work(self, name: str, facts: Facts) -> _WorkSpan:
        """See `Observer.work`."""
        return _WorkSpan(self._tracer, name, facts)

    def note(self, event: Event) -> None:
        """See `Observer.note`; spans are made of work alone."""


class RequestSpan:
    """The span of one request, current until `end`."""

    def __init__(self, tracer: Tracer, parent: Context) -> None:
        self._span = tracer.start_span("request", parent, SpanKind.SERVER)
        self._token = _around.set(set_span_in_context(self._span, parent))

    def end(self, *, method: str, route: str, status: int, error: str | None) -> None:
        """Name the span and end it.

        Args:
            method: As sent.
            route: The template.
            status: 0 when no answer began.
            error: The code that was answered.
        """
        method = method if method in _METHODS else "_OTHER"
        self._span.update_name(f"{method} {route}")
        self._span.set_attributes({"http.request.method": method, "http.route": route})
        if status:
            self._span.set_attribute("http.response.status_code", status)
        if error is not None:
            self._span.set_attribute("error.type", error)
        if status >= 500:
            self._span.set_status(StatusCode.ERROR)
        self._span.end()
        _around.reset(self._token)


class _WorkSpan:
    __slots__ = ("_facts", "_name", "_span", "_token", "_tracer")

    def __init__(self, tracer: Tracer, name: str, facts: Facts) -> None:
        self._tracer = tracer
        self._name = name
        self._facts = facts

    def __enter__(self) -> None:
        parent = _around.get() or Context()
        told = {f"hivemem.{name}": value for name, value in self._facts.items()}
        self._span: Span = self._tracer.start_span(self._name, parent, attributes=told)
        self._token = _around.set(set_span_in_context(self._span, parent))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            # The code alone: messages name values that a caller sent.
            code = error.code if isinstance(error, HivememError) else type(error).__name__
            self._span.set_attribute("error.type", code)
            self._span.set_status(StatusCode.ERROR)
        self._span.end()
        _around.reset(self._token)


class ExportingProvider(TracerProvider):
    """Sends spans over HTTP to where the standard variables `OTEL_...` say."""

    def __init__(self) -> None:
        resource = Resource.create({SERVICE_VERSION: hivemem.__version__})
        if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
            resource = resource.merge(Resource({SERVICE_NAME: "hivemem"}))
        super().__init__(resource=resource, shutdown_on_exit=False)
        self._exporter = OTLPSpanExporter()
        self.add_span_processor(BatchSpanProcessor(self._exporter))

    def shutdown(self) -> None:
        """Send what is left, without repeating it for long, and end the thread."""
        # The exporter repeats for ten seconds what a collector did not take; some supervisors kill after ten.
        giving_up = threading.Timer(_LAST_SECONDS, self._exporter.shutdown)
        giving_up.daemon = True
        giving_up.start()
        super().shutdown()
        giving_up.cancel()
