"""Requests made from the OpenAPI document, right and wrong ones: the server never fails, and every answer is
one that the document describes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.types import ASGIApp, Receive, Scope, Send

from hivemem.app import OpenServices, open_services
from hivemem.domain.access import Scope as KeyScope
from hivemem.service.remember import StoreRequest
from hivemem.settings import load_settings
from hivemem.surfaces.rest.app import build_app
from hivemem.surfaces.rest.openapi import openapi_document
from tests.surfaces.serving import FAST, bearer

HOST = "testserver"

# Not among them: that what breaks a schema is refused. A null counts as not sent, and unknown properties are
# ignored, both on purpose.
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
OPERATIONS = [(path, method) for path, methods in openapi_document()["paths"].items() for method in methods]
EXAMPLES = 25
MANY_EXAMPLES = 400

# What no schema can say: names of things that exist.
KNOWN = {"key": "fact_a", "start_node": "fact_a", "node_key": "fact_a", "query": "harbour"}


class LateApplication:
    """The REST API over a database that is opened in the event loop that serves it.

    Without MCP, which alone needs the beginning and end of a server's life.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._app: ASGIApp | None = None
        self._services: OpenServices | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.key = ""
        self.edge_id = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            raise NotImplementedError
        if self._app is None:
            self._app = await self._open()
        await self._app(scope, receive, send)

    async def _open(self) -> ASGIApp:
        given_settings = {"data_dir": str(self._folder), **FAST, "allowed_hosts": [HOST]}
        services = await open_services(load_settings(given_settings, {}).settings)
        self._services, self._loop = services, asyncio.get_running_loop()
        owner = await services.access.local_principal()
        owner = await services.access.local_principal()
        self.key, _ = await services.keys.create(owner, name="test", scope=KeyScope.OWNER)
        related = {"to_key": "person_b", "relationship": "is known to"}
        stored = await services.remember.store(
            owner, StoreRequest(key="fact_a", description="The harbour opens.", relationships=(related,))
        )
        self.edge_id = stored.created[0].entity_id
        return build_app(services)

    def close(self) -> None:
        if self._services is not None and self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._services.close(), self._loop).result(30)


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LateApplication]:
    made = LateApplication(tmp_path_factory.mktemp("fuzzed"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def schema(application: LateApplication) -> BaseSchema:
    return schemathesis.openapi.from_asgi("/openapi.json", application)


def fuzz(application: LateApplication, schema: BaseSchema, path: str, method: str, examples: int) -> None:
    operation = schema[path][method.upper()]
    cases = st.one_of([operation.as_strategy(generation_mode=mode) for mode in GenerationMode])
    known = {**KNOWN, "edge_id": application.edge_id}

    @given(case=cases, named=st.booleans())
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Case, named: bool) -> None:
        if named:
            _name_what_exists(case, known)
        case.call_and_validate(headers=bearer(application.key), checks=CHECKS)

    check()


def _name_what_exists(case: Case, known: dict[str, str]) -> None:
    places: list[Any] = [case.body, case.query, case.path_parameters]
    for place in places:
        if isinstance(place, dict):
            place.update({name: value for name, value in known.items() if name in place})
            if "keys" in place:
                place["keys"] = ["fact_a", "person_b"]


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_answers_are_as_documented(
    application: LateApplication, schema: BaseSchema, path: str, method: str
) -> None:
    fuzz(application, schema, path, method, EXAMPLES)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_many_more_answers_are_as_documented(
    application: LateApplication, schema: BaseSchema, path: str, method: str
) -> None:
    fuzz(application, schema, path, method, MANY_EXAMPLES)
