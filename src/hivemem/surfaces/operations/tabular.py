"""hm_tabular: questions about the cells of a spreadsheet or CSV file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject
from hivemem.errors import InvalidInput
from hivemem.surfaces.answers import Answer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.presentation import with_warnings
from hivemem.surfaces.services import Services
from hivemem.surfaces.shortening import take_fitting
from hivemem.surfaces.wire_json import json_size

Mode = Literal["outline", "range", "search", "trace"]
_ROOM_BESIDE_LIST = 400


class TabularInput(Input):
    """Arguments of hm_tabular; which ones are read depends on `mode`."""

    mode: Mode = Field(
        description="outline: sheets and their regions. range: cells. search: cells by words. trace: what a "
        "cell depends on, or what depends on it."
    )
    file_id: str = Field(description="From hm_list_files.")
    include_regions: bool = Field(True, description="outline: list the used regions of each sheet.")
    max_sheets: int = Field(250, ge=1, le=500, description="outline: most sheets.")
    sheet: str | None = Field(None, description="range, trace: name or id; search: only this sheet.")
    range: str | None = Field(None, description="range: cells such as A1:D20.")
    max_cells: int = Field(2000, ge=1, le=2000, description="range: most cells.")
    query: str | None = Field(None, description="search: words or a number.")
    limit: int = Field(25, ge=1, le=50, description="search: most hits.")
    cell: str | None = Field(None, description="trace: a cell such as B7.")
    direction: Literal["precedents", "dependents"] = Field(
        "precedents", description="trace: what it is made of, or what is made of it."
    )
    max_depth: int = Field(6, ge=1, le=8, description="trace: farthest distance in formulas.")
    max_nodes: int = Field(200, ge=1, le=500, description="trace: most cells.")


class TabularAnswer(Answer):
    """Answer of hm_tabular; outline has `sheets`, range `rows`, search `hits`, trace `nodes` and `edges`."""

    file_id: str
    sheets: list[dict[str, Any]] | None = None
    sheet: str | None = None
    range: str | None = None
    rows: list[list[dict[str, Any]]] | None = Field(None, description="One list of cells for each row.")
    query: str | None = None
    hits: list[dict[str, Any]] | None = None
    count: int | None = None
    cell: str | None = None
    direction: str | None = None
    nodes: list[dict[str, Any]] | None = None
    edges: list[dict[str, Any]] | None = None
    truncated: bool = Field(description="Something was left out because of a limit.")
    warnings: list[str] | None = None


async def _tabular(services: Services, principal: Principal, sent: TabularInput) -> JsonObject:
    needed = {"outline": (), "range": ("sheet", "range"), "search": ("query",), "trace": ("sheet", "cell")}
    for name in needed[sent.mode]:
        value: str | None = getattr(sent, name)
        if value is None or not value.strip():
            raise InvalidInput(f"/{name} is required by the mode {sent.mode!r}.")
    file = await services.files.content(principal, sent.file_id)
    documents, budget = services.documents, services.settings.max_answer_bytes
    sheet = sent.sheet or ""
    if sent.mode == "outline":
        outline = await documents.outline(
            file, include_regions=sent.include_regions, max_sheets=sent.max_sheets
        )
        return _fitted(asdict(outline), "sheets", budget)
    if sent.mode == "range":
        cells = await documents.range(file, sheet=sheet, address=sent.range or "", max_cells=sent.max_cells)
        told = asdict(cells)
        told["rows"] = [[_without_nulls(cell) for cell in row] for row in told["rows"]]
        return _fitted(told, "rows", budget)
    if sent.mode == "search":
        found = await documents.search(file, query=sent.query or "", sheet=sent.sheet, limit=sent.limit)
        answer = _fitted(asdict(found), "hits", budget)
        answer["count"] = len(answer["hits"])
        return answer
    traced = await documents.trace(
        file,
        sheet=sheet,
        cell=sent.cell or "",
        direction=sent.direction,
        max_depth=sent.max_depth,
        max_nodes=sent.max_nodes,
    )
    told = asdict(traced)
    told["nodes"] = [_without_nulls(node) for node in told["nodes"]]
    edges = [{"from": edge["source"], "to": edge["target"]} for edge in told["edges"]]
    answer = _fitted({**told, "edges": []}, "nodes", budget * 2 // 3)
    # An edge to a cell that is not told would lead nowhere.
    ids = {node["id"] for node in answer["nodes"]}
    known = [edge for edge in edges if edge["from"] in ids and edge["to"] in ids]
    answer["edges"] = take_fitting(known, budget - json_size(answer))
    answer["truncated"] = answer["truncated"] or len(answer["edges"]) < len(edges)
    return answer


def _without_nulls(cell: dict[str, Any]) -> dict[str, Any]:
    """A cell without formula and format where it has none; an empty value is told."""
    return {name: value for name, value in cell.items() if value is not None or name == "value"}


def _fitted(told: dict[str, Any], name: str, budget: int) -> dict[str, Any]:
    """`told` with as much of its list `name` as fits."""
    answer = {key: value for key, value in told.items() if key != "warnings"}
    entries: Sequence[Any] = told[name]
    room = budget - json_size({**answer, name: []}) - _ROOM_BESIDE_LIST
    kept = take_fitting(list(entries), room)
    if not kept and entries:
        # One entry alone is too large, such as a row of long texts: it is told whole all the same.
        kept = [entries[0]]
    answer[name] = kept
    warnings = list(told.get("warnings", ()))
    if len(kept) < len(entries):
        answer["truncated"] = True
        warnings.append(
            f"{len(entries) - len(kept)} of {len(entries)} {name} were left out; ask for less at once"
        )
    return with_warnings(answer, warnings)


TABULAR = Operation(
    name="hm_tabular",
    summary="Look into an uploaded spreadsheet or CSV file without reading it all: outline, cells, search, "
    "and what a formula depends on.",
    input=TabularInput,
    output=TabularAnswer,
    access=Access.READ,
    idempotent=True,
    routes=(RestRoute(method="POST", path="/tabular/{mode}"),),
    verb="tabular",
    arguments=("mode", "file_id"),
    handler=_tabular,
)
