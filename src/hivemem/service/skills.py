"""Skills: the built-in texts, and those that were published for the agents of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from hivemem.domain.access import Principal
from hivemem.domain.skills import (
    CustomSkill,
    SkillFile,
    checked_skill_name,
    following_version,
    text_sha256,
)
from hivemem.domain.text import storable_text
from hivemem.errors import InvalidInput, LimitExceeded, NotFound
from hivemem.ports.clock import Clock
from hivemem.ports.store import SkillStore

CATALOG_VERSION = "0.1.0"
"""Of the built-in texts, all together. A client replaces its own texts by those of a higher version than
0.13.4, so that ours stay below."""

FIRST_VERSION = "0.1.0"
DEFAULT_VARIANT = "general"
_GENERAL_ALIASES = frozenset(("openai", "chatgpt", "gpt", "codex", "claude-code"))

MAX_SKILL_FILES = 100
MAX_SKILL_BYTES = 1024 * 1024
_MAX_VERSION_CHARACTERS = 50

_CURSOR_HEADER = """---
description: Long-term memory in a graph. Recall before you answer, store what lasts.
alwaysApply: true
---
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill as an agent gets it: built in with a `variant`, or published with a `skill_id`."""

    name: str
    version: str
    content: str
    sha256: str
    variant: str | None = None
    skill_id: str | None = None
    files: tuple[SkillFile, ...] = ()


class Skills:
    """Answers for skills, and keeps those that people publish."""

    def __init__(self, *, store: SkillStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._built_in = built_in_skills()

    async def catalog(self, principal: Principal) -> list[Skill]:
        """All skills that a caller can have: the built-in ones, then those of the graph by name."""
        published = await self._store.skills(principal.graph_id)
        return [*self._built_in, *map(_published, published)]

    async def get(
        self, principal: Principal, *, variant: str | None, name: str | None, skill_id: str | None
    ) -> Skill:
        """The skill that all the given names fit; the general one when none is given.

        Raises:
            NotFound: There is none.
        """
        if variant is None and name is None and skill_id is None:
            variant = DEFAULT_VARIANT
        wanted = DEFAULT_VARIANT if variant in _GENERAL_ALIASES else variant
        for skill in await self.catalog(principal):
            if (
                (wanted is None or skill.variant == wanted)
                and (name is None or skill.name == name)
                and (skill_id is None or skill.skill_id == skill_id)
            ):
                return skill
        asked = {"variant": variant, "name": name, "skill_id": skill_id}
        words = " and ".join(
            f"{field} {value[:100]!r}" for field, value in asked.items() if value is not None
        )
        raise NotFound(f"there is no skill with {words}; list the skills to see what there is.")

    async def publish(
        self,
        principal: Principal,
        name: str,
        content: str,
        files: Sequence[SkillFile] = (),
        version: str | None = None,
    ) -> tuple[CustomSkill, bool]:
        """Publish a skill, or a new version of it; the skill, and whether anything changed.

        Args:
            principal: The caller.
            name: Also the folder that clients install it in.
            content: Markdown.
            files: Beside the text.
            version: Left out, the first one is 0.1.0, and the last number goes up with every change.

        Raises:
            Forbidden: The credential is read-only.
            InvalidInput: A name, text or path that breaks a rule, or the name of a built-in skill.
            LimitExceeded: Too many files, or too large.
        """
        principal.require_write()
        if any(checked_skill_name(name).lower() == skill.name for skill in self._built_in):
            raise InvalidInput(f"/name {name!r} is a built-in skill's; choose another.")
        size = len(content.encode()) + sum(file.size_bytes for file in files)
        if len(files) > MAX_SKILL_FILES or size > MAX_SKILL_BYTES:
            raise LimitExceeded(
                f"/files of {name!r} are {len(files)} with {size} bytes, the text included; a skill has at "
                f"most {MAX_SKILL_FILES} files and {MAX_SKILL_BYTES} bytes.",
                limit=MAX_SKILL_BYTES,
            )
        if version is not None:
            storable_text(version, "/version", max_characters=_MAX_VERSION_CHARACTERS)
        present = {skill.name: skill for skill in await self._store.skills(principal.graph_id)}.get(name)
        ordered = tuple(sorted(files, key=lambda file: file.path))
        same = present is not None and (present.content, present.files) == (content, ordered)
        if present is not None and same and version in (None, present.version):
            return present, False
        following = FIRST_VERSION if present is None else following_version(present.version)
        skill = CustomSkill(
            skill_id=self._clock.new_id("skill"),
            name=name,
            version=version or following,
            content=content,
            files=ordered,
            published_at=self._clock.now(),
        )
        return await self._store.put_skill(principal.graph_id, skill), True

    async def published(self, principal: Principal) -> Sequence[CustomSkill]:
        """The skills of the graph, by name."""
        return await self._store.skills(principal.graph_id)

    async def remove(self, principal: Principal, name: str) -> None:
        """Take a published skill away.

        Raises:
            Forbidden: The credential is read-only.
            NotFound: None of that name was published.
        """
        principal.require_write()
        if not await self._store.remove_skill(principal.graph_id, name):
            raise NotFound(f"no skill {name[:100]!r} was published; `hivemem skill list` shows them.")


def built_in_skills() -> tuple[Skill, ...]:
    """The texts that come with the program. Those for one kind of agent are made of the general one."""
    general = _text("surfaces/setup/skill.md")
    _, _, body = general.removeprefix("---\n").partition("\n---\n")
    project = f"{general.rstrip()}\n\n{_text('skills/project.md')}"
    return (
        _built_in("general", "hivemem", general),
        _built_in(
            "project", "hivemem-project", project.replace("\nname: hivemem\n", "\nname: hivemem-project\n")
        ),
        _built_in("cursor", "hivemem-cursor", _CURSOR_HEADER + body),
        _built_in("cli", "hivemem-cli", _text("skills/cli.md")),
        _built_in("memorize-full-chat", "memorize-full-chat", _text("skills/memorize-full-chat.md")),
    )


def _built_in(variant: str, name: str, content: str) -> Skill:
    return Skill(
        name=name,
        version=CATALOG_VERSION,
        content=content,
        sha256=text_sha256(content),
        variant=variant,
    )


def _published(skill: CustomSkill) -> Skill:
    return Skill(
        name=skill.name,
        version=skill.version,
        content=skill.content,
        sha256=skill.sha256,
        skill_id=skill.skill_id,
        files=skill.files,
    )


def _text(path: str) -> str:
    return resources.files("hivemem").joinpath(path).read_text("utf-8")
