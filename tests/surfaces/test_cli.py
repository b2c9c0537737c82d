"""The command line: verbs, exit codes, JSON output, imports, start-up cost."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hivemem.surfaces.cli import operations
from hivemem.surfaces.cli.main import VERBS, build_parser, main
from hivemem.surfaces.operations import OPERATIONS
from tests.surfaces.serving import FAST, command, environment, run_cli


@pytest.fixture
def hivemem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command in this process: (exit code, standard output, standard error)."""
    for name in [name for name in os.environ if name.startswith("HIVEMEM_")]:
        monkeypatch.delenv(name)
    for name, value in FAST.items():
        monkeypatch.setenv(f"HIVEMEM_{name.upper()}", value)
    monkeypatch.setenv("HIVEMEM_DATA_DIR", str(tmp_path / "data"))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_store_recall_nodes_and_overview_for_people(hivemem: Any) -> None:
    code, out, err = hivemem(
        "store", "pref_tea", "Anna drinks tea.", "--relate", "person_anna", "is liked by Anna"
    )
    assert code == 0
    assert out.startswith("created pref_tea (preference, version 1)")
    assert "related: is liked by Anna" in out
    assert "person_anna" in err
    code, out, _ = hivemem("recall", "who", "drinks", "tea")
    assert code == 0
    assert out.splitlines()[0].startswith("1. ")
    assert "pref_tea  (preference)" in out
    assert "Anna drinks tea." in out
    assert "-> person_anna" in out
    code, out, _ = hivemem("recall", "quarterly", "tax")
    assert (code, out) == (0, "nothing relevant is remembered\n")
    code, out, _ = hivemem("nodes", "pref_tea", "nope")
    assert "-> person_anna: is liked by Anna" in out
    assert "nope  is not there" in out
    code, out, _ = hivemem("overview")
    assert out.startswith("2 nodes, 1 edges, 0 hyperedges")


def test_json_output_is_the_answer_of_the_api(hivemem: Any) -> None:
    _, out, _ = hivemem(
        "store", "fact_a", "One.", "--data", '{"n": 1}', "--asset", "file_1", "--search-text", "uno", "--json"
    )
    assert json.loads(out)["status"] == "created"
    node = json.loads(hivemem("nodes", "fact_a", "--json")[1])["nodes"]["fact_a"]["node"]
    assert (node["data"], node["assets"], node["search_text"]) == ({"n": 1}, ["file_1"], "uno")
    assert json.loads(hivemem("--json", "recall", "One")[1])["results"][0]["key"] == "fact_a"
    assert json.loads(hivemem("overview", "--json")[1])["nodes"] == 1


def test_errors_have_their_exit_codes(hivemem: Any) -> None:
    code, out, err = hivemem("recall", " ", "--json")
    assert (code, out) == (6, "")
    error = json.loads(err)
    assert (error["error"], error["exit_code"]) == ("validation_error", 6)
    code, out, err = hivemem("recall", " ")
    assert (code, out) == (6, "")
    assert err.startswith("error: /query")
    hivemem("store", "fact_a", "One.")
    assert hivemem("store", "fact_a", "Two.", "--if-exists", "error")[0] == 6
    assert hivemem("store", "fact_a", "Two.", "--data", "{")[0] == 6
    assert hivemem("recall", "x", "--organization", "acme")[0] == 6
    assert hivemem("key", "revoke", "nope")[0] == 5
    assert hivemem("import", "/no/such/file.jsonl")[0] == 5
    assert hivemem("overview", "--set", "nonsense")[0] == 2


@pytest.mark.parametrize(
    "arguments", [["nope"], ["recall"], ["key"], ["recall", "x", "-n", "many"], ["--nope"]]
)
def test_usage_errors_end_with_code_2(hivemem: Any, arguments: list[str]) -> None:
    code, out, err = hivemem(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("usage: hivemem")
    code, out, err = hivemem("--json", *arguments)
    assert (code, out) == (2, "")
    error = json.loads(err)
    assert (error["error"], error["exit_code"]) == ("validation_error", 2)


@pytest.mark.parametrize(
    ("arguments", "command"),
    [(["update", "fact_a"], "update"), (["user", "add", "ada", "--pasword"], "user add")],
)
def test_what_no_option_takes_is_told_with_the_usage_of_its_command(
    hivemem: Any, arguments: list[str], command: str
) -> None:
    code, _, err = hivemem(*arguments)
    assert code == 2
    assert err.startswith(f"usage: hivemem {command} [-h]")
    assert f"error: unrecognized arguments: {arguments[-1]}; `hivemem {command} --help` tells more." in err


def test_refused_relationships_have_an_exit_code(hivemem: Any) -> None:
    hivemem("store", "fact_a", "One.")
    hivemem("store", "fact_b", "Two.")
    good = {"from_key": "fact_a", "to_key": "fact_b", "relationship": "comes before"}
    assert hivemem("relate", "--relationships", json.dumps([good]))[0] == 0
    code, out, _ = hivemem("relate", "--relationships", json.dumps([good, {"from_key": "fact_a"}]), "--json")
    answer = json.loads(out)
    assert (code, len(answer["replayed"]), len(answer["errors"])) == (6, 1, 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no disk that is always full")
@pytest.mark.parametrize("arguments", [["overview"], ["config", "show"], ["overview", "--json"]])
def test_an_answer_that_cannot_be_written_is_an_error(tmp_path: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command(*arguments, "--data-dir", str(tmp_path)),
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=60,
            check=False,
        )
    assert done.returncode == 8
    assert b"standard output: No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr


def test_no_verb_prints_the_help(hivemem: Any) -> None:
    code, out, err = hivemem()
    assert (code, out) == (2, "")
    assert "recall" in err


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "eval"])
def test_every_verb_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "--data-dir" in shown and "--json" in shown


@pytest.mark.parametrize(
    "operation", [one for one in OPERATIONS if one.verb], ids=lambda operation: operation.name
)
def test_a_verb_can_send_exactly_the_properties_of_its_operation(operation: Any) -> None:
    parser = argparse.ArgumentParser(prog=f"hivemem {operation.verb}")
    operations.add_arguments(parser)
    options = {action.dest for action in parser._actions} - {"help", "relate"}
    assert options == operation.input_names
    assert VERBS[operation.verb][0] == "operations"


def test_import_stores_the_good_lines_and_numbers_the_bad_ones(hivemem: Any, tmp_path: Path) -> None:
    lines = [
        '{"key": "fact_a", "description": "One."}',
        "",
        "not json",
        '{"key": "fact_b"}',
        '{"key": "fact_c", "description": "Three.", "relationships": '
        '[{"to_key": "fact_a", "relationship": "after"}]}',
        '{"key": "fact_d", "description": "Four.", "colour": "red"}',
        '["fact_e", "Five."]',
        '{"key": "  ", "description": "Six."}',
        '{"key": "fact_a", "description": "One again.", "node_type": null}',
    ]
    file = tmp_path / "nodes.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + "\n".join(lines).encode() + b'\n{"key": "fact_\xff"}\n')
    code, out, err = hivemem("import", str(file))
    assert code == 6
    assert out.startswith("2 created, 1 updated, 0 kept, 6 failed, 1 relationships")
    assert [line.split(":")[0] for line in err.splitlines()] == [
        f"line {number}" for number in (3, 4, 6, 7, 10, 8)
    ]
    code, out, err = hivemem("import", str(file), "--json", "--if-exists", "keep")
    summary = json.loads(out)
    assert code == 6
    assert err == ""
    assert summary["kept"] == 3
    assert {error["line"] for error in summary["errors"]} == {3, 4, 6, 7, 8, 10}


def test_import_reads_gzip_and_standard_input(tmp_path: Path) -> None:
    rows = [json.dumps({"key": f"fact_{n}", "description": f"Number {n} ☕."}) for n in range(300)]
    packed = tmp_path / "nodes.jsonl.gz"
    packed.write_bytes(gzip.compress("\n".join(rows).encode()))
    done = run_cli(tmp_path / "data", "import", str(packed), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["created"] == 300
    assert done.stderr == b""
    done = run_cli(tmp_path / "data", "import", "-", "--progress", stdin="\n".join(rows[:3]))
    assert done.stdout.decode().startswith("0 created, 3 updated")
    assert b"importing" in done.stderr
    broken = tmp_path / "broken.gz"
    broken.write_bytes(packed.read_bytes()[:100])
    assert run_cli(tmp_path / "data", "import", str(broken)).returncode == 6


def test_output_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    locale = {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "LC_ALL": "C"}
    run_cli(tmp_path, "store", "event_party", "-", stdin="Party 🎉 at 新宿.", **locale)
    shown = run_cli(tmp_path, "nodes", "event_party", **locale)
    assert "Party 🎉 at 新宿." in shown.stdout.decode("utf-8")


def test_reembed_reports_how_much_it_did(hivemem: Any) -> None:
    hivemem("store", "fact_a", "One.")
    assert json.loads(hivemem("reembed", "--json")[1]) == {"embedded": 0}


def test_commands_that_need_no_model_load_none(tmp_path: Path) -> None:
    nowhere = {"HIVEMEM_EMBEDDER": f"directory:{tmp_path / 'nowhere'}"}
    for arguments in (("key", "list"), ("overview",), ("nodes", "user_profile")):
        done = run_cli(tmp_path, *arguments, **nowhere)
        assert (done.returncode, done.stderr) == (0, b""), arguments
    # One that needs it does look for it, and tells.
    stored = run_cli(tmp_path, "store", "fact_a", "One.", **nowhere)
    assert stored.returncode == 0
    assert b"nowhere" in stored.stderr


def test_version_and_help_import_nothing_heavy() -> None:
    heavy = ("pydantic", "mcp", "numpy", "starlette", "uvicorn", "asyncio", "onnxruntime")
    program = (
        "import sys\n"
        "from hivemem.surfaces.cli.main import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "except SystemExit:\n"
        "    pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules])\n"
    )
    for argument in ("--version", "--help"):
        done = subprocess.run(
            [sys.executable, "-S", "-c", program, argument],
            capture_output=True,
            env=environment(PYTHONPATH=os.pathsep.join(path for path in sys.path if path)),
            timeout=30,
            check=True,
        )
        assert done.stdout.decode().splitlines()[-1] == "[]"


def test_the_parser_knows_every_verb() -> None:
    shown = build_parser().format_help()
    assert all(verb in shown for verb in VERBS)
