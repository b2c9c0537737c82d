"""Names a request by its route: what logs, metrics and traces may tell of a path."""

from __future__ import annotations

from starlette.routing import Route
from starlette.types import Scope

NO_ROUTE = "none"
"""Name of requests that no route took."""


def route_template(scope: Scope) -> str:
    """The template of the route that took a request, such as `/api/v1/memory/history/{key}`."""
    route = scope.get("route")
    return route.path_format if isinstance(route, Route) else NO_ROUTE
