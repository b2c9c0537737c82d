"""`hivemem key`: create, list and revoke API keys. Works while a server runs."""

from __future__ import annotations

import argparse
import json
from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands."""
    from hivemem.surfaces.cli.main import common_options

    common = common_options()
    actions = parser.add_subparsers(
        metavar="ACTION", dest="action", required=True, parser_class=argparse.ArgumentParser
    )
    create = actions.add_parser("create", help="make a key and print it once", parents=[common])
    create.add_argument("--name", default="key", help="what uses the key")
    create.add_argument("--read-only", action="store_true", help="the key can recall but not store")
    actions.add_parser("list", help="print all keys, without their secrets", parents=[common])
    revoke = actions.add_parser("revoke", help="end a key at once", parents=[common])
    revoke.add_argument("key", metavar="KEY", help="id of the key, or the whole key")


def run(arguments: argparse.Namespace) -> int:
    """Run one sub-command."""
    from hivemem.domain.access import Scope
    from hivemem.surfaces.cli.local import run_locally
    from hivemem.surfaces.cli.printing import table
    from hivemem.surfaces.presentation import timestamp

    async def work(services: Any, _: Any) -> tuple[dict[str, object], list[str]]:
        access = services.access
        if arguments.action == "create":
            scope = Scope.MEMBER if arguments.read_only else Scope.OWNER
            secret, key = await access.create_key(arguments.name, scope)
            body: dict[str, object] = {
                "key": secret,
                "key_id": key.key_id,
                "name": key.name,
                "scope": key.scope.value,
            }
            return body, [secret]
        if arguments.action == "revoke":
            key_id = await access.revoke_key(arguments.key)
            return {"key_id": key_id, "revoked": True}, [f"revoked {key_id}"]
        keys = await access.list_keys()
        rows = [
            {
                "key_id": key.key_id,
                "name": key.name,
                "scope": key.scope.value,
                "created_at": timestamp(key.created_at),
                "revoked_at": None if key.revoked_at is None else timestamp(key.revoked_at),
            }
            for key in keys
        ]
        header = ("KEY ID", "NAME", "SCOPE", "CREATED", "REVOKED")
        cells = [header, *(tuple("" if cell is None else str(cell) for cell in row.values()) for row in rows)]
        return {"keys": rows, "count": len(rows)}, table(cells)

    body, lines = run_locally(arguments, work, models=False)
    print(json.dumps(body, ensure_ascii=False) if arguments.json else "\n".join(lines))
    return 0
