"""What formulas refer to, and how they read when they are copied."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.formula import Tokenizer
from openpyxl.formula.translate import Translator

from hivemem.documents.tabular.a1 import cell_name, parse_area
from hivemem.documents.tabular.formulas import (
    AreaReference,
    ExternalReference,
    NameReference,
    SheetSpan,
    TableReference,
    moved,
    references,
)


def area(text: str, first: str | None = None, last: str | None = None) -> AreaReference:
    span = SheetSpan(first=first, last=last or first) if first else None
    return AreaReference(area=parse_area(text), sheets=span)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("=A1+$B$2*C3", [area("A1"), area("B2"), area("C3")]),
        ("=SUM(A1:B9,A1:B9)", [area("A1:B9")]),
        ("=sum(b:b)+max($3:4)", [area("B:B"), area("3:4")]),
        ("=Rates!A1", [area("A1", "Rates")]),
        ("='It''s 2026'!A1:A2", [area("A1:A2", "It's 2026")]),
        ("=SUM(Jan:Mar!C3)", [area("C3", "Jan", "Mar")]),
        ("=SUM('Jan 1:Mar 1'!C3)", [area("C3", "Jan 1", "Mar 1")]),
        ("=LOG10(5)+ATAN2(1,2)", []),
        ('="A1 and "&B1&" ""C1"" "', [area("B1")]),
        ("=IF(TRUE,#REF!,#N/A)", []),
        ("=Tax*A1", [NameReference(name="Tax"), area("A1")]),
        ("=Prices!Tax", [NameReference(name="Tax", sheets=SheetSpan(first="Prices", last="Prices"))]),
        ("=Größe*2", [NameReference(name="Größe")]),
        ("=1.5E3+2E-4", []),
        (
            "=[1]Other!A1+[book.xlsx]S!B2",
            [ExternalReference(text="[1]Other!A1"), ExternalReference(text="[book.xlsx]S!B2")],
        ),
        ("=Sales[Amount]", [TableReference(table="Sales", items=frozenset(), columns=("Amount", "Amount"))]),
        (
            "=Sales[[#Totals],[Amount]]",
            [TableReference(table="Sales", items=frozenset({"#totals"}), columns=("Amount", "Amount"))],
        ),
        (
            "=Sales[[#This Row],[A]:[C]]",
            [TableReference(table="Sales", items=frozenset({"#this row"}), columns=("A", "C"))],
        ),
        (
            "=[@Amount]*2",
            [TableReference(table=None, items=frozenset({"#this row"}), columns=("Amount", "Amount"))],
        ),
        (
            "=Sales[@[Unit price]]",
            [
                TableReference(
                    table="Sales", items=frozenset({"#this row"}), columns=("Unit price", "Unit price")
                )
            ],
        ),
        ("=Sales[#All]", [TableReference(table="Sales", items=frozenset({"#all"}), columns=None)]),
        (
            "=Sales['#Nr '[kg']]",
            [TableReference(table="Sales", items=frozenset(), columns=("#Nr [kg]", "#Nr [kg]"))],
        ),
        ("=A1:INDEX(B:B,3)", [area("A1"), area("B:B")]),
        ("=A1#+@B1:B3", [area("A1"), area("B1:B3")]),
        ("=_xlfn.XLOOKUP(A1,B1:B2,C1:C2)", [area("A1"), area("B1:B2"), area("C1:C2")]),
        ("=A1048577+XFE1", []),
        ("", []),
    ],
)
def test_references(formula: str, expected: list[object]) -> None:
    assert references(formula) == expected


cells = st.builds(
    lambda row, column, fixed_row, fixed_column: (
        cell_name(row, column)
        if not (fixed_row or fixed_column)
        else f"{'$' * fixed_column}{cell_name(row, column).rstrip('0123456789')}{'$' * fixed_row}{row}"
    ),
    st.integers(20, 900),
    st.integers(20, 600),
    st.booleans(),
    st.booleans(),
)
ranges = st.one_of(cells, st.builds("{}:{}".format, cells, cells))
operands = st.one_of(
    ranges,
    st.builds("Sheet2!{}".format, cells),
    st.builds("'My sheet'!{}".format, ranges),
    st.builds("SUM({},{})".format, ranges, ranges),
    st.sampled_from(['"A1 ""B2"""', "LOG10(3)", "TRUE", "12.5", "Tax", "#N/A"]),
)
formulas = st.lists(operands, min_size=1, max_size=5).map(lambda parts: "=" + "+".join(parts))


@settings(max_examples=50, deadline=None)
@given(formulas)
def test_areas_are_those_that_another_tokenizer_finds(formula: str) -> None:
    others = {
        token.value.replace("'", "").replace("$", "").rpartition("!")[2]
        for token in Tokenizer(formula).items
        if token.type == "OPERAND" and token.subtype == "RANGE" and token.value != "Tax"
    }
    assert {str(one.area) for one in references(formula) if isinstance(one, AreaReference)} == {
        str(parse_area(other)) for other in others
    }


@settings(max_examples=50, deadline=None)
@given(formulas, st.integers(-19, 50), st.integers(-19, 50))
def test_formulas_move_as_another_translator_moves_them(formula: str, rows: int, columns: int) -> None:
    there = cell_name(100 + rows, 100 + columns)
    assert moved(formula, rows, columns) == Translator(formula, origin=cell_name(100, 100)).translate_formula(
        there
    )
    assert moved(formula, 0, 0) == formula


def test_what_leaves_the_sheet_is_lost() -> None:
    assert moved("=A1+Sheet2!$A1+B$2", -1, -1) == "=#REF!+Sheet2!#REF!+A$2"
    assert moved("=SUM(A:B)+SUM(3:4)+Sales[A1]", 1, 1) == "=SUM(B:C)+SUM(4:5)+Sales[A1]"


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60), st.text(alphabet="A1$:![]'\"(), #@.", max_size=60))
def test_no_text_breaks_the_reader(any_text: str, likely: str) -> None:
    for text in (any_text, likely):
        references("=" + text)
        assert moved(text, 0, 0).upper() == text.upper()


def test_long_nonsense_takes_time_in_proportion() -> None:
    for text in (
        "A" * 50_000,
        "A:" * 25_000,
        "[" * 50_000,
        "'" * 50_001,
        '"' * 50_001,
        "a!" * 25_000,
        "'a'" * 20_000,
    ):
        references("=" + text)
