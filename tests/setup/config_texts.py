"""Random configuration files: JSON with comments and TOML, written the way people write them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(["model", "a b", "x.y", "ünï", "permissions", "env", "quo\\te", "theme", ""])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.sampled_from([1.5, -2e10]),
    st.sampled_from(
        ["", "plain", 'with "quotes"', "// no comment", "/* nor this */", "{", "\\", "🎉", "a\nb"]
    ),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3))
)


@st.composite
def json_texts(draw: st.DrawFn, shapes: st.SearchStrategy[Any]) -> str:
    """One of `shapes` as text, with odd spacing, comments, trailing commas and either line end."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    gaps = st.sampled_from(
        ["", " ", "\n", "\n    ", "\n\t", "  \n\n  ", " /* { */ ", " // , }\n", "\n  // note\n  ", "/**/"]
    )

    def gap() -> str:
        return draw(gaps).replace("\n", newline)

    def name(key: str) -> str:
        return json.dumps(key, ensure_ascii=draw(st.booleans()))

    def render(value: Any) -> str:
        if isinstance(value, dict):
            items = [f"{gap()}{name(key)}{gap()}:{gap()}{render(one)}{gap()}" for key, one in value.items()]
            return "{" + joined(items) + gap() + "}"
        if isinstance(value, list):
            return "[" + joined([f"{gap()}{render(one)}{gap()}" for one in value]) + gap() + "]"
        return json.dumps(value, ensure_ascii=False)

    def joined(items: list[str]) -> str:
        return ",".join(items) + ("," if items and draw(st.booleans()) else "")

    value = draw(shapes)
    if draw(st.booleans()):
        indent = draw(st.sampled_from([2, 3, 4, "\t"]))
        text = json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", newline)
    else:
        text = gap() + render(value) + gap()
    bom = "\ufeff" if draw(st.integers(0, 9)) == 0 else ""
    return bom + text + draw(st.sampled_from(["", newline, newline * 2]))


@st.composite
def toml_texts(draw: st.DrawFn) -> str:
    """Tables, arrays of tables, multi-line strings and comments, in any order that TOML allows."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    top = draw(
        st.lists(
            st.sampled_from(
                [
                    'model = "gpt"',
                    "# a comment with [mcp_servers.hivemem] in it",
                    "notify = [\n  'a', # one\n  'b',\n]",
                    'text = """\n[mcp_servers.hivemem]\nurl = "in a string"\n"""',
                    "  indented   =   true  # odd",
                    "",
                ]
            ),
            unique=True,
            max_size=5,
        )
    )
    tables = draw(
        st.lists(
            st.sampled_from(
                [
                    "[features]\nhooks = true",
                    "[mcp_servers]",
                    '[mcp_servers.other]\ncommand = "x" # keep',
                    '[ mcp_servers . "third one" ]\nargs = ["-y"]\n\n[mcp_servers."third one".env]\nA = "1"',
                    '[[hooks]]\nevent = "PreToolUse"\ncommand = "check"\n',
                    "# the end",
                ]
            ),
            unique=True,
            max_size=5,
        )
    )
    text = "\n".join(top + tables).replace("\n", newline)
    return text + draw(st.sampled_from(["", newline, newline * 2, " # last"]))
