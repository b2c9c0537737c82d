"""Summaries made of a text's own sentences."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.documents.lines import sentences, unwrapped
from hivemem.documents.summary import central_ranks, summarise

ENGLISH = """# Garden well

The garden well supplies water to the greenhouse and to the vegetable beds. My aunt once saw a fox there.
The pump of the garden well is switched off in November, before the first frost. Before the frost the water is
drained from the pump and from the pipes of the well. The weather was mild last year. In spring the pump is
switched on again, and the water of the well is tested. Somebody painted the door green.
"""
GERMAN = """Der Brunnen im Garten versorgt das Gewächshaus mit Wasser. Gestern kam ein Paket aus Bremen an.
Die Pumpe des Brunnens wird im November vor dem ersten Frost abgeschaltet. Vor dem Frost wird das Wasser
aus der Pumpe und den Rohren des Brunnens abgelassen. Das Radio spielte leise Musik. Im Frühling wird
die Pumpe des Brunnens wieder eingeschaltet und das Wasser geprüft."""
CHINESE = (
    "花园的水井给温室供水。昨天来了一个包裹。水井的水泵在十一月霜冻之前关闭。"
    "霜冻前要把水泵和水井管道里的水排空。收音机在放音乐。春天再打开水井的水泵并检查水质。"
)


@pytest.mark.parametrize(
    ("text", "title", "told", "left_out"),
    [
        (ENGLISH, "Garden well", "pump", ("fox", "painted", "mild")),
        (GERMAN, None, "Pumpe", ("Bremen", "Radio")),
        (CHINESE, None, "水泵", ("包裹", "音乐")),
    ],
)
def test_central_sentences_are_told_in_any_language(
    text: str, title: str | None, told: str, left_out: tuple[str, ...]
) -> None:
    size = 60 if text is CHINESE else 260
    summary = summarise(text, title=title, max_characters=size)

    assert told in summary and len(summary) <= size
    assert not any(word in summary for word in left_out)
    assert summary == summarise(text, title=title, max_characters=size)
    if title:
        assert summary.startswith("Garden well. ")


def test_sentences_keep_the_order_of_the_text() -> None:
    found = [
        text.find(part) for text in [" ".join(ENGLISH.split())] for part in sentences(summarise(ENGLISH))
    ]

    assert len(found) > 2 and found == sorted(found) and found[0] >= 0


def test_what_was_said_is_not_said_again() -> None:
    text = "The pump is switched off in November. " * 3 + "The valve is opened in the spring by the gardener."
    assert summarise(text).count("November") == 1


@pytest.mark.parametrize(
    ("text", "title", "expected"),
    [
        ("", None, ""),
        ("", "Only a title", "Only a title."),
        ("Milk\nEggs\nBread", None, "Milk Eggs Bread"),
        ("Milk", "Milk", "Milk."),
        ("Item | Price\nPump | 120", "Prices", "Prices. Item | Price Pump | 120"),
    ],
)
def test_texts_without_sentences(text: str, title: str | None, expected: str) -> None:
    assert summarise(text, title=title) == expected


def test_code_and_lines_that_are_no_sentences_are_left_out() -> None:
    text = (
        "Menu and other things to press here\n"
        + ENGLISH
        + "\n```\nthe pump of the well is a pump of the well.\n```\n"
    )
    summary = summarise(text, max_characters=2000)

    assert "Menu" not in summary and "a pump of the well" not in summary
    assert "November" in summary


def test_a_single_long_sentence_is_cut_at_a_word() -> None:
    summary = summarise("The pump " + "of the old garden well " * 20 + "stops.", max_characters=60)

    assert (
        len(summary) <= 60
        and summary.endswith("…")
        and summary[:-1].split()[-1] in "pump of the old garden well"
    )


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=400), st.one_of(st.none(), st.text(max_size=80)), st.integers(1, 200))
def test_no_summary_is_longer_than_asked(text: str, title: str | None, size: int) -> None:
    assert len(summarise(text, title=title, max_characters=size)) <= size


def naive_ranks(vectors: list[dict[str, float]]) -> list[float]:
    """The same walk with the matrix of cosines written out."""
    count = len(vectors)
    cosines = [
        [sum(value * other.get(term, 0.0) for term, value in one.items()) for other in vectors]
        for one in vectors
    ]
    steps = [[value / sum(row) for value in row] if sum(row) > 0 else [1 / count] * count for row in cosines]
    ranks = [1 / count] * count
    for _ in range(60):
        ranks = [
            0.15 / count + 0.85 * sum(ranks[one] * steps[one][other] for one in range(count))
            for other in range(count)
        ]
    return ranks


vectors = st.dictionaries(st.sampled_from("abcdef"), st.floats(0.1, 1), max_size=4).map(
    lambda counts: {
        term: value / math.sqrt(sum(each * each for each in counts.values()))
        for term, value in counts.items()
    }
)


@settings(max_examples=40, deadline=None)
@given(st.lists(vectors, min_size=1, max_size=7))
def test_ranks_are_those_of_the_written_out_matrix(made: list[dict[str, float]]) -> None:
    ranks = central_ranks(made)

    assert ranks == pytest.approx(naive_ranks(made), abs=1e-5)
    assert math.fsum(ranks) == pytest.approx(1)


def test_lines_that_a_page_broke_are_joined() -> None:
    lines = [
        "1. Heading",
        "The pump is switched off in Novem-",
        "ber, and the water is drained from every pipe of the",
        "Garden Well before the first frost of the year comes.",
        "",
        "- an item",
        "- another",
        "Short line",
        "Next line",
    ]
    assert list(unwrapped(lines)) == [
        "1. Heading",
        "The pump is switched off in November, and the water is drained from every pipe of the "
        "Garden Well before the first frost of the year comes.",
        "- an item",
        "- another",
        "Short line",
        "Next line",
    ]


def test_sentences_end_where_they_end() -> None:
    text = "Dr. Smith came at 3.15 p.m. today. Did he? Yes! “Fine.” 水泵关了。好。 यह ठीक है। Last"
    assert list(sentences(text)) == [
        "Dr. Smith came at 3.15 p.m. today.",
        "Did he?",
        "Yes!",
        "“Fine.”",
        "水泵关了。",
        "好。",
        "यह ठीक है।",
        "Last",
    ]
