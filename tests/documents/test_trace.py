"""Precedents and dependents of cells."""

from __future__ import annotations

from typing import Any

import pytest
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.table import Table

from hivemem.documents.limits import DocumentLimits
from hivemem.documents.tabular.answers import TraceAnswer
from hivemem.documents.tabular.trace import trace
from hivemem.documents.tabular.xlsx import XlsxWorkbook
from hivemem.errors import InvalidInput, NotFound
from tests.documents.making import LIMITS, csv_book, opened, sheet_of


def build(book: Any) -> None:
    main = book.active
    main.title = "Main"
    for row in (
        ["Item", "Net", "Gross"],
        ["Pump", 120, "=B2*(1+Tax)"],
        ["Hose", 30, "=B3*(1+Tax)"],
        ["Sum", "=SUM(B2:B3)", "=SUM(C2:C3)"],
        [None, None, "=C4+Rates!B1"],
    ):
        main.append(row)
    rates = book.create_sheet("Rates")
    rates.append([0.25, "=A1*100"])
    book.defined_names["Tax"] = DefinedName("Tax", attr_text="Rates!$A$1")


BOOK = opened(build)


def traced(cell: str, book: Any = BOOK, sheet: str = "Main", **options: Any) -> TraceAnswer:
    return trace(book, LIMITS, file_id="f", sheet=sheet, cell=cell, **options)


def nodes(answer: TraceAnswer) -> dict[str, int]:
    return {node.id: node.depth for node in answer.nodes}


def edges(answer: TraceAnswer) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in answer.edges}


def test_precedents_over_names_ranges_and_sheets() -> None:
    answer = traced("C5")

    assert nodes(answer) == {
        "Main!C5": 0,
        "Main!C4": 1,
        "Rates!B1": 1,
        "Main!C2:C3": 2,
        "Main!C2": 2,
        "Main!C3": 2,
        "Rates!A1": 2,
        "Main!B2": 3,
        "Main!B3": 3,
    }
    assert edges(answer) == {
        ("Main!C4", "Main!C5"),
        ("Rates!B1", "Main!C5"),
        ("Main!C2:C3", "Main!C4"),
        ("Main!C2", "Main!C2:C3"),
        ("Main!C3", "Main!C2:C3"),
        ("Rates!A1", "Rates!B1"),
        ("Main!B2", "Main!C2"),
        ("Rates!A1", "Main!C2"),
        ("Main!B3", "Main!C3"),
        ("Rates!A1", "Main!C3"),
    }
    assert not answer.truncated and answer.warnings == ()
    by_id = {node.id: node for node in answer.nodes}
    assert by_id["Main!B2"].value == 120 and by_id["Main!B2"].formula is None
    assert by_id["Main!C2"].formula == "=B2*(1+Tax)"
    assert (by_id["Main!C2:C3"].cell, by_id["Main!C2:C3"].value) == ("C2:C3", None)


def test_dependents_over_names_ranges_and_sheets() -> None:
    answer = traced("A1", sheet="rates", direction="dependents")

    assert nodes(answer) == {
        "Rates!A1": 0,
        "Main!C2": 1,
        "Main!C3": 1,
        "Rates!B1": 1,
        "Main!C4": 2,
        "Main!C5": 2,
    }
    assert ("Rates!A1", "Main!C2") in edges(answer)
    assert ("Main!C2", "Main!C4") in edges(answer) and ("Main!C4", "Main!C5") in edges(answer)
    assert not answer.truncated


def test_both_directions_tell_the_same_edges_between_cells() -> None:
    forward = edges(traced("B2", direction="dependents"))
    backward = edges(traced("C5"))

    assert ("Main!B2", "Main!C2") in forward & backward
    assert ("Main!B2", "Main!B4") in forward


@pytest.mark.parametrize("cell", ["A1", "B2", "Z99"])
def test_a_cell_that_nothing_is_calculated_from_stands_alone(cell: str) -> None:
    answer = traced(cell)

    assert nodes(answer) == {f"Main!{cell}": 0}
    assert (answer.edges, answer.truncated) == ((), False)


def test_circles_end() -> None:
    book = sheet_of([["=B1+1", "=C1+1", "=A1+1", "=D1", "=SUM(A1:E1)"]])

    assert nodes(traced("A1", book, "Sheet")) == {"Sheet!A1": 0, "Sheet!B1": 1, "Sheet!C1": 2}
    assert edges(traced("D1", book, "Sheet")) == {("Sheet!D1", "Sheet!D1")}
    around = traced("E1", book, "Sheet")
    assert ("Sheet!E1", "Sheet!A1:E1") in edges(around) and ("Sheet!A1:E1", "Sheet!E1") in edges(around)
    assert nodes(traced("A1", book, "Sheet", direction="dependents"))["Sheet!C1"] == 1


def test_depth_and_nodes_are_capped_and_said() -> None:
    book = sheet_of([[1, *(f"={chr(64 + at)}1+1" for at in range(1, 20))]])

    deep = traced("T1", book, "Sheet", max_depth=3)
    assert nodes(deep) == {"Sheet!T1": 0, "Sheet!S1": 1, "Sheet!R1": 2, "Sheet!Q1": 3}
    assert deep.truncated
    few = traced("A1", book, "Sheet", direction="dependents", max_depth=8, max_nodes=4)
    assert list(nodes(few)) == ["Sheet!A1", "Sheet!B1", "Sheet!C1", "Sheet!D1"]
    assert few.truncated
    exact = traced("D1", book, "Sheet", max_depth=3)
    assert len(exact.nodes) == 4 and not exact.truncated


def test_edges_name_only_nodes_that_are_told() -> None:
    book = sheet_of([[f"=SUM(A{row + 1}:C{row + 3})", f"=A{row + 1}", row] for row in range(1, 40)])
    for direction in ("precedents", "dependents"):
        for most in (1, 2, 7, 30):
            answer = traced("A20", book, "Sheet", direction=direction, max_depth=8, max_nodes=most)
            ids = [node.id for node in answer.nodes]
            assert len(ids) == len(set(ids)) <= most
            assert {end for edge in edges(answer) for end in edge} <= set(ids)
            assert [node.depth for node in answer.nodes] == sorted(node.depth for node in answer.nodes)


def table_book() -> XlsxWorkbook:
    def make(book: Any) -> None:
        sheet = book.active
        for row in (
            ["Item", "Price", "Count", "Cost"],
            ["Pump", 120, 2, "=Stock[[#This Row],[Price]]*Stock[[#This Row],[Count]]"],
            ["Hose", 30, 5, "=[@Price]*[@Count]"],
        ):
            sheet.append(row)
        sheet.add_table(Table(displayName="Stock", ref="A1:D3"))
        sheet["F1"] = "=SUM(Stock[Cost])"
        sheet["F2"] = "=ROWS(Stock)"
        sheet["F3"] = "=Stock[[#Headers],[Item]]"
        sheet["F4"] = "=SUM(Stock[[Price]:[Count]])"
        sheet["F5"] = "=Nothing[Cost]+Unknown+Lost!A1+[1]Other!A1"

    return opened(make)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("D2", {"B2", "C2"}),
        ("D3", {"B3", "C3"}),
        ("F1", {"D2:D3"}),
        ("F2", {"A2:D3"}),
        ("F3", {"A1"}),
        ("F4", {"B2:C3"}),
        ("F5", set()),
    ],
)
def test_table_references_are_resolved(cell: str, expected: set[str]) -> None:
    answer = traced(cell, table_book(), "Sheet", max_depth=1)
    assert {
        edge.source.partition("!")[2] for edge in answer.edges if edge.target == f"Sheet!{cell}"
    } == expected


def test_what_cannot_be_followed_is_said() -> None:
    warnings = " ".join(traced("F5", table_book(), "Sheet").warnings)
    for name in ("Nothing", "Unknown", "Lost", "[1]Other!A1"):
        assert name in warnings


def test_names_that_name_themselves_end() -> None:
    def make(book: Any) -> None:
        book.active["A1"] = "=One+B1"
        book.defined_names["One"] = DefinedName("One", attr_text="Two+Two")
        book.defined_names["Two"] = DefinedName("Two", attr_text="One+Sheet!$C$1")

    assert set(nodes(traced("A1", opened(make), "Sheet"))) >= {"Sheet!A1", "Sheet!B1", "Sheet!C1"}


def test_references_over_several_sheets() -> None:
    def make(book: Any) -> None:
        book.active.title = "Jan"
        book.active["A1"] = 1
        for name in ("Feb", "Mar"):
            book.create_sheet(name)["A1"] = 2
        book.create_sheet("Year")["A1"] = "=SUM(Jan:Mar!A1)"

    book = opened(make)
    assert set(nodes(traced("A1", book, "Year"))) == {"Year!A1", "Jan!A1", "Feb!A1", "Mar!A1"}
    assert set(nodes(traced("A1", book, "Feb", direction="dependents"))) == {"Feb!A1", "Year!A1"}


def test_whole_columns_and_long_ranges_are_read_by_their_formulas() -> None:
    def make(book: Any) -> None:
        book.active["B1"] = "=SUM(A:A)"
        book.active["B2"] = "=SUM(A1:A9000)"
        book.active["A7000"] = 5
        book.active["A8000"] = "=A7000"

    book = opened(make)
    dependents = traced("A7000", book, "Sheet", direction="dependents", max_depth=1)
    assert set(nodes(dependents)) == {"Sheet!A7000", "Sheet!B1", "Sheet!B2", "Sheet!A8000"}
    assert set(nodes(traced("B1", book, "Sheet"))) == {"Sheet!B1", "Sheet!A:A", "Sheet!A8000", "Sheet!A7000"}


def test_csv_files_have_no_formulas() -> None:
    answer = traced("A2", csv_book("a,b\n=B1,2\n"), "prices")

    assert [(node.id, node.value, node.formula) for node in answer.nodes] == [("prices!A2", "=B1", None)]


def test_too_many_formulas_are_said() -> None:
    assert trace(BOOK, DocumentLimits(max_formulas=2), file_id="f", sheet="Main", cell="C5").truncated


def test_wrong_questions_name_what_is_wrong() -> None:
    for options, error, said in (
        ({"cell": "A1:B2"}, InvalidInput, "A1:B2"),
        ({"cell": "A0"}, InvalidInput, "A0"),
        ({"cell": "A1", "sheet": "Prices"}, NotFound, "'Main', 'Rates'"),
        ({"cell": "A1", "max_depth": 9}, InvalidInput, "/max_depth is 9"),
        ({"cell": "A1", "max_nodes": 0}, InvalidInput, "/max_nodes is 0"),
    ):
        with pytest.raises(error, match=said):
            traced(**options)  # type: ignore[arg-type]
