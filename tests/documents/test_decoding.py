"""Encodings of text that nobody states."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.documents.decoding import declared_charset, decode, looks_like_text, storable

TEXT = "Grüße aus Łódź, 你好, привет"


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        codecs.BOM_UTF8 + TEXT.encode(),
        codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
        codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"),
        codecs.BOM_UTF32_BE + TEXT.encode("utf-32-be"),
    ],
)
def test_unicode_is_recognised(data: bytes) -> None:
    assert looks_like_text(data)
    assert decode(data).text == TEXT
    assert decode(data).warnings == ()


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_recognised_by_its_zeros(encoding: str) -> None:
    data = "Zürich, eine Stadt".encode(encoding)

    assert looks_like_text(data)
    assert decode(data).text == "Zürich, eine Stadt"


def test_the_fallback_to_latin_1_is_said() -> None:
    decoded = decode("Crème brûlée – 5 €".encode("cp1252"))

    assert decoded.text == "Crème brûlée – 5 €"
    assert "Latin-1" in decoded.warnings[0]


def test_a_declared_encoding_comes_before_the_guess() -> None:
    data = '<meta charset="windows-1251"><p>Привет</p>'.encode("cp1251")

    assert declared_charset(data) == "windows-1251"
    assert "Привет" in decode(data, declared=declared_charset(data)).text
    assert decode("é".encode("latin-1"), declared="rot13").encoding == "cp1252"
    assert decode("é".encode("latin-1"), declared="no such").encoding == "cp1252"


def test_broken_unicode_behind_a_mark_is_counted() -> None:
    assert "1 places" in decode(codecs.BOM_UTF8 + b"a\xffb").warnings[0]


def test_line_ends_are_one_and_unstorable_characters_replaced() -> None:
    assert decode(b"a\r\nb\rc\0d").text == "a\nb\nc\ufffdd"
    assert storable("a\ud800b") == "a\ufffdb"


@pytest.mark.parametrize("data", [bytes(1000), bytes(range(256)) * 10, b"\x7fELF\x02\x01\x01" + bytes(9)])
def test_binary_data_is_no_text(data: bytes) -> None:
    assert not looks_like_text(data)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([None, "utf-7", "latin-1", "utf-16", "idna", "\0"]))
def test_any_bytes_become_storable_text(data: bytes, declared: str | None) -> None:
    decode(data, declared=declared).text.encode()
