"""Remember this repository, ask five questions that it answers and one that it does not, keep serving.

python -m demo [--data-dir DIR] [--port PORT] [--exit]
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

from demo.client import DemoFailed, Server, call, hivemem, working_key
from demo.memories import Memory, repository_memories
from demo.show import answer_lines, connection_lines

ROOT = Path(__file__).resolve().parent.parent

QUESTIONS = (
    "Why is there no HNSW graph for the vectors?",
    "What happens when two writers change the same node at once?",
    "Which models are used, and under which licence?",
    "How are the rankings of several retrievers joined?",
    "What is google-re2 used for?",
)
UNANSWERABLE = "How long does sourdough bread have to rise?"


def main() -> int:
    """Run the demonstration and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m demo", description="Demonstrate hivemem on itself.")
    parser.add_argument("--data-dir", type=Path, default=Path("data/demo"), help="folder of its memory")
    parser.add_argument("--port", type=int, default=8477, help="port of the server; 0 takes a free one")
    parser.add_argument("--exit", action="store_true", help="stop the server at the end")
    arguments = parser.parse_args()
    # An end by SIGTERM must stop the server too.
    signal.signal(signal.SIGTERM, _terminated)
    try:
        demonstrate(arguments.data_dir, arguments.port, stay=not arguments.exit)
    except DemoFailed as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped")
    return 0


def _terminated(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def demonstrate(data_dir: Path, port: int, *, stay: bool) -> None:
    """Start a server on `data_dir`, fill it, ask it; with `stay`, serve until Ctrl-C.

    Raises:
        DemoFailed: A step did not work.
    """
    say(f"$ hivemem serve --data-dir {data_dir} --port {port}")
    server = Server(data_dir, port)
    try:
        key = working_key(server, data_dir)
        server.wait_until_ready()
        say(f"ready on {server.url}, log in {server.log}", "")
        remember(repository_memories(ROOT), data_dir)
        show_overview(server, key)
        for question in (*QUESTIONS, UNANSWERABLE):
            answer = call(server.url, "POST", "/recall", {"query": question, "max_results": 5}, key)
            say(*answer_lines(question, answer))
        say(*connection_lines(server.url, key))
        if stay:
            say("", "The server keeps running; Ctrl-C stops it.")
            server.process.wait()
    finally:
        server.stop()


def remember(memories: list[Memory], data_dir: Path) -> None:
    """Store the memories with `hivemem import`, beside the running server.

    A second run changes the same nodes again: keys are permanent, and equal relationships are one.
    """
    file = data_dir / "memories.jsonl"
    lines = [json.dumps(memory, ensure_ascii=False) for memory in memories]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    say(f"$ hivemem import {file} --data-dir {data_dir}")
    done = subprocess.run(hivemem("import", str(file), "--data-dir", str(data_dir)), check=False)
    if done.returncode:
        raise DemoFailed(f"the import ended with code {done.returncode}.")


def show_overview(server: Server, key: str) -> None:
    """Print how large the graph is."""
    overview = call(server.url, "GET", "/overview", key=key)
    types = ", ".join(f"{one['node_count']} {one['name']}" for one in overview["types"])
    say(f"{overview['nodes']} nodes ({types}), {overview['edges']} relationships", "")


def say(*lines: str) -> None:
    """Print at once: the server and the import write to the same terminal."""
    print("\n".join(lines), flush=True)


if __name__ == "__main__":
    sys.exit(main())
