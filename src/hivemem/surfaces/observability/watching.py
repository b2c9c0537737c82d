"""All that an application is watched with, as its settings say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.middleware import Middleware
from starlette.routing import Route

from hivemem.errors import InvalidInput
from hivemem.surfaces.observability.metrics import Metrics
from hivemem.surfaces.observability.requests import Watch
from hivemem.surfaces.observability.scraping import metrics_route
from hivemem.surfaces.services import Services

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from hivemem.surfaces.observability.telemetry import Traces


class Watching:
    """Metrics, traces and the access log of one application. What is off costs nothing.

    Attributes:
        routes: To be routes of the application.
        middleware: To be around everything else.

    Raises:
        InvalidInput: Traces are wanted and their packages are missing.
    """

    def __init__(self, services: Services) -> None:
        settings = services.settings
        self._observers = services.observers
        self._provider: TracerProvider | None = None
        self._traces: Traces | None = None
        if settings.telemetry == "on":
            self._provider, self._traces = _open_traces()
        self._metrics = None if settings.metrics == "off" else Metrics(services)
        for observer in (self._metrics, self._traces):
            if observer is not None:
                self._observers.add(observer)
        self.routes: list[Route] = []
        if self._metrics is not None:
            self.routes.append(metrics_route(services, self._metrics))
        self.middleware: list[Middleware] = []
        access_log = settings.access_log == "on"
        if self._metrics is not None or self._traces is not None or access_log:
            self.middleware.append(
                Middleware(Watch, metrics=self._metrics, traces=self._traces, access_log=access_log)
            )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Around the application's life: at its end, spans that wait are sent."""
        try:
            yield
        finally:
            for observer in (self._metrics, self._traces):
                if observer is not None:
                    self._observers.remove(observer)
            if self._provider is not None:
                # A collector that does not answer holds this up for a while, but not the loop.
                await asyncio.to_thread(self._provider.shutdown)


def _open_traces() -> tuple[TracerProvider, Traces]:
    try:
        from hivemem.surfaces.observability import telemetry
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"the setting telemetry is 'on', but {error.name!r} is not installed; install "
            "hivemem[telemetry], or set telemetry to 'off'."
        ) from error
    provider = telemetry.ExportingProvider()
    return provider, telemetry.Traces(provider)
