"""`hivemem skill`: publish a folder as a skill for the agents of this memory, list and remove skills."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hivemem.domain.skills import SkillFile

_TEXT = "SKILL.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands."""
    from hivemem.surfaces.cli.main import common_options

    common = common_options()
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    publish = actions.add_parser(
        "publish", help="publish a folder, or the next version of it", parents=[common]
    )
    publish.add_argument("folder", metavar="DIR", help=f"with a {_TEXT}, and text files beside it")
    publish.add_argument("--name", help="default: `name` in the header of the text, or the folder's name")
    actions.add_parser("list", help="print the published skills", parents=[common])
    remove = actions.add_parser("remove", help="take a skill away", parents=[common])
    remove.add_argument("name", metavar="NAME")


def run(arguments: argparse.Namespace) -> int:
    """Run one sub-command."""
    from hivemem.surfaces.cli.local import run_locally
    from hivemem.surfaces.cli.printing import table
    from hivemem.surfaces.presentation import timestamp

    async def work(services: Any, principal: Any) -> tuple[dict[str, object], list[str]]:
        skills = services.skills
        if arguments.action == "publish":
            name, version, content, files = read_folder(Path(arguments.folder).expanduser(), arguments.name)
            skill, changed = await skills.publish(principal, name, content, files, version)
            status = "published" if changed else "unchanged"
            body: dict[str, object] = {
                "status": status,
                "name": skill.name,
                "skill_id": skill.skill_id,
                "version": skill.version,
                "files": len(skill.files),
            }
            return body, [f"{status} {skill.name} {skill.version} ({skill.skill_id})"]
        if arguments.action == "remove":
            await skills.remove(principal, arguments.name)
            return {"name": arguments.name, "removed": True}, [f"removed {arguments.name}"]
        rows = [
            {
                "name": skill.name,
                "version": skill.version,
                "skill_id": skill.skill_id,
                "files": len(skill.files),
                "published_at": timestamp(skill.published_at),
            }
            for skill in await skills.published(principal)
        ]
        cells = [("NAME", "VERSION", "ID", "FILES", "PUBLISHED")]
        cells += [tuple(map(str, row.values())) for row in rows]
        return {"skills": rows, "count": len(rows)}, table(cells)

    body, lines = run_locally(arguments, work, models=False)
    print(json.dumps(body, ensure_ascii=False) if arguments.json else "\n".join(lines))
    return 0


def read_folder(folder: Path, name: str | None) -> tuple[str, str | None, str, list[SkillFile]]:
    """(name, version, text, files) of a folder; hidden files are left out.

    Raises:
        NotFound: No such folder, or no text in it.
        InvalidInput: A file is not UTF-8, or its path breaks a rule.
    """
    import mimetypes

    from hivemem.domain.skills import SkillFile
    from hivemem.errors import NotFound

    text = folder / _TEXT
    if not text.is_file():
        raise NotFound(f"there is no {text}; name a folder with the text of a skill in {_TEXT}.")
    content = _utf8(text)
    header = _header(content)
    files: list[SkillFile] = []
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in relative.parts)
        # A link could lead to what was never meant to be published.
        if path == text or hidden or path.is_symlink() or not path.is_file():
            continue
        kind = mimetypes.guess_type(path.name)[0] or "text/plain"
        files.append(SkillFile(path=relative.as_posix(), content=_utf8(path), content_type=kind))
    return name or header.get("name") or folder.resolve().name, header.get("version"), content, files


def _utf8(path: Path) -> str:
    from hivemem.errors import InvalidInput

    try:
        # Not read_text: it would change the ends of lines, and with them the hash.
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text; a skill has text files only.") from error


def _header(content: str) -> dict[str, str]:
    """The plain `name: value` lines between the first two lines of three dashes."""
    lines = content.splitlines()
    if not lines or lines[0].strip() != "---":
        return {}
    found: dict[str, str] = {}
    for line in lines[1:]:
        if line.strip() == "---":
            return found
        name, colon, value = line.partition(":")
        if colon and not name.startswith((" ", "#")) and value.strip():
            found[name.strip()] = value.strip().strip("\"'")
    return {}
