"""Search in workbooks by words."""

from __future__ import annotations

from typing import Any

import pytest

from hivemem.documents.limits import DocumentLimits
from hivemem.documents.tabular.answers import SearchHit
from hivemem.documents.tabular.search import search
from hivemem.documents.tabular.workbook import Workbook
from hivemem.errors import InvalidInput, NotFound
from tests.documents.making import LIMITS, csv_book, opened


def build(book: Any) -> None:
    sheet = book.active
    sheet.title = "Budget"
    for row in (
        ["Household budget"],
        ["Item", "Monthly cost", "Share"],
        ["Rent", 900, 0.64],
        ["Groceries", 420, 0.3],
        ["Power bill", 80, 0.06],
    ):
        sheet.append(row)
    for row in (3, 4, 5):
        sheet.cell(row, 2).number_format = "#,##0.00 [$€-407]"
        sheet.cell(row, 3).number_format = "0%"
    notes = book.create_sheet("Notes")
    notes.append(
        ["The power company raises the bill in spring and asks for a new contract with the meter number"]
    )
    notes.append(["账单 电费 四月"])
    notes.append([None, 48281])


BOOK = opened(build)


def hits(query: str, book: Workbook = BOOK, **options: Any) -> list[SearchHit]:
    answer = search(book, LIMITS, file_id="f", query=query, **options)
    assert answer.count == len(answer.hits)
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)
    assert all(hit.score > 0 for hit in answer.hits)
    return list(answer.hits)


def places(found: list[SearchHit]) -> list[tuple[str, str, str]]:
    return [(hit.sheet, hit.kind, hit.range) for hit in found]


def test_a_label_is_told_with_its_value_before_longer_texts() -> None:
    found = hits("power bill")

    assert (found[0].kind, found[0].range, found[0].text) == ("label", "A5", "Power bill: 80")
    assert ("Notes", "value", "A1") in places(found)


def test_headers_and_regions_are_found() -> None:
    assert places(hits("monthly cost")) == [("Budget", "header", "B2"), ("Budget", "region", "A1:C5")]
    assert ("Budget", "region", "A1:C5") in places(hits("household"))


def test_words_are_found_in_other_forms() -> None:
    assert places(hits("grocery costs"))[:1] == [("Budget", "label", "A4")]


def test_other_scripts_are_found() -> None:
    assert places(hits("电费"))[0] == ("Notes", "value", "A2")


def test_numbers_are_found_by_value_however_they_are_written() -> None:
    for query in ("48281", "48,281", "meter 48281"):
        assert ("Notes", "value", "B3") in places(hits(query)), query
    (share,) = [hit for hit in hits("30%") if hit.kind == "value"]
    assert (share.range, share.text) == ("C4", "Share: 0.3")


def test_formats_are_found_by_what_they_mean() -> None:
    assert ("Budget", "format", "C3:C5") in places(hits("percentage"))
    assert ("Budget", "format", "B3:B5") in places(hits("euro currency"))


def test_rare_words_weigh_more_than_common_ones() -> None:
    book = csv_book("pump red\npump blue\npump green\nvalve red special\n")
    assert hits("pump special", book)[0].range == "A4"


def test_the_search_can_be_of_one_sheet() -> None:
    assert {hit.sheet for hit in hits("power bill", sheet="notes")} == {"Notes"}
    with pytest.raises(NotFound, match="Budget"):
        hits("power", sheet="Nowhere")


def test_equal_hits_keep_the_order_of_the_file_and_the_limit_holds() -> None:
    book = csv_book("\n".join(f"pump {chr(97 + at % 26)}" for at in range(200)))

    found = hits("pump", book, limit=7)
    assert [hit.range for hit in found] == [f"A{at}" for at in range(1, 8)]
    assert found == hits("pump", book, limit=50)[:7]


@pytest.mark.parametrize("query", ["zebra", "(((", '"*"', "€"])
def test_what_is_not_there_is_not_found(query: str) -> None:
    assert hits(query) == []


@pytest.mark.parametrize("query", ["", " \n", "x" * 1001])
def test_blank_and_enormous_queries_are_refused(query: str) -> None:
    with pytest.raises(InvalidInput, match="/query"):
        hits(query)


def test_limits_are_checked_and_said() -> None:
    with pytest.raises(InvalidInput, match="/limit is 51"):
        hits("a", limit=51)
    assert search(BOOK, DocumentLimits(max_cells=6), file_id="f", query="rent").truncated
    assert not search(BOOK, LIMITS, file_id="f", query="rent").truncated
