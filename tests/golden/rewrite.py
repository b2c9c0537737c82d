"""Writes the golden answers anew: `python -m tests.golden.rewrite`. Read the difference before keeping it."""

from __future__ import annotations

import asyncio
import json

from tests.golden.recall import FILE, answers


def main() -> None:
    FILE.write_text(json.dumps(asyncio.run(answers()), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"written: {FILE.name}")


if __name__ == "__main__":
    main()
