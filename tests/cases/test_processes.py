"""Two programs on one folder: no write is lost, and each sees the other's at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases.reports import Report
from tests.surfaces.test_stdio import HELLO, Stdio


class Program:
    """A `hivemem mcp` process that has been greeted; a failed call fails the test."""

    def __init__(self, folder: Path) -> None:
        self.stdio = Stdio(folder)
        self.stdio.ask("initialize", HELLO)
        self.stdio.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def call(self, name: str, **arguments: object) -> dict[str, Any]:
        result = self.stdio.call(name, arguments)
        assert result.get("isError") is False, result
        return result["structuredContent"]

    def close(self) -> None:
        code, _ = self.stdio.close()
        assert code == 0


def together(*works: Callable[[], None]) -> None:
    """Run the works in threads; what one raises is raised here."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.shared
def test_reported_writers_side_by_side(tmp_path: Path, report: Callable[[str], Report]) -> None:
    case = report("C18")
    one, two = Program(tmp_path), Program(tmp_path)
    programs = {"p1": one, "p2": two}
    left, right, recalls = (entry["for"] for entry in case.action["parallel"])

    def store(program: Program, given: dict[str, Any]) -> None:
        [node] = given["op"]["store"]["nodes"]
        for number in range(given["from"], given["to"] + 1):
            sent = {name: value.replace("${i}", str(number)) for name, value in node.items()}
            assert program.call("hm_store", **sent)["status"] == "created"

    def ask_between_the_writes() -> None:
        for number in range(left["from"], left["to"] + 1):
            store(one, {**left, "from": number, "to": number})
            one.call("hm_recall", query=recalls["op"]["recall"]["query"].replace("${i}", str(number)))

    together(ask_between_the_writes, lambda: store(two, right))
    for step in case.action["then"]:
        program = programs[step["on"]]
        if "overview" in step:
            assert program.call("hm_get_overview")["nodes"] == 40
        elif "get" in step:
            got = program.call("hm_get_nodes", keys=step["get"]["keys"])
            assert sorted(got["nodes"]) == sorted(step["get"]["keys"])
        else:
            found = program.call("hm_recall", query=step["recall"]["query"])
            assert found["results"][0]["key"] == "right_20"
    assert one.call("hm_get_overview")["nodes"] == 40
    one.close()
    two.close()


def test_each_sees_the_others_last_write(tmp_path: Path) -> None:
    writer, reader = Program(tmp_path), Program(tmp_path)
    for number, word in enumerate(("quince", "medlar", "sorb", "damson")):
        writer.call("hm_store", key=f"tree_{word}", description=f"The {word} stands in row {number}.")
        found = reader.call("hm_recall", query=word)
        assert [item["key"] for item in found["results"]] == [f"tree_{word}"]
        writer, reader = reader, writer
    writer.call("hm_store", key="tree_sorb", description="The stump was dug out.")
    assert reader.call("hm_recall", query="row 2", force_regex=True)["results"] == []
    writer.close()
    reader.close()
