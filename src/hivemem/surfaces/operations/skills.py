"""hm_skill: texts that teach an agent how to use the memory, and whatever else was published."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.skills import is_newer
from hivemem.domain.text import JsonObject
from hivemem.errors import InvalidInput
from hivemem.service.skills import CATALOG_VERSION, Skill
from hivemem.surfaces.answers import Answer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.services import Services


class SkillInput(Input):
    """Arguments of hm_skill."""

    action: Literal["list", "get", "check_update"] = "list"
    variant: str | None = Field(
        None,
        description="A built-in skill: general, project, cursor, cli or memorize-full-chat. general when "
        "neither name nor skill_id is given.",
    )
    name: str | None = Field(None, description="Exact name of a skill.")
    skill_id: str | None = Field(None, description="A published skill.")
    current_version: str | None = Field(None, description="For check_update: the version that you have.")
    include_content: bool | None = Field(
        None, description="Whether the text comes along. Left out: for get only."
    )


class SkillFileEntry(Answer):
    """A file beside the text of a skill."""

    path: str
    content: str | None = None
    sha256: str
    size_bytes: int
    content_type: str


class SkillEntry(Answer):
    """A skill: built in with a variant, or published with a skill_id."""

    name: str
    variant: str | None = None
    skill_id: str | None = None
    version: str
    sha256: str
    content: str | None = Field(None, description="Markdown.")
    files: list[SkillFileEntry] | None = Field(None, description="Of a published skill.")


class SkillAnswer(Answer):
    """Answer of hm_skill: skills of list, skill of get, and what check_update found."""

    catalog_version: str
    skills: list[SkillEntry] | None = None
    skill: SkillEntry | None = None
    update_available: bool | None = None
    latest_version: str | None = None
    warnings: list[str] | None = None


def skill_entry(skill: Skill, *, content: bool) -> JsonObject:
    """A skill as JSON, with its texts or without them."""
    entry: JsonObject = {"name": skill.name}
    if skill.variant is not None:
        entry["variant"] = skill.variant
    else:
        entry["skill_id"] = skill.skill_id
    entry |= {"version": skill.version, "sha256": skill.sha256}
    if content:
        entry["content"] = skill.content
    if skill.variant is None:
        entry["files"] = [
            {
                "path": file.path,
                **({"content": file.content} if content else {}),
                "sha256": file.sha256,
                "size_bytes": file.size_bytes,
                "content_type": file.content_type,
            }
            for file in skill.files
        ]
    return entry


async def _skill(services: Services, principal: Principal, sent: SkillInput) -> JsonObject:
    content = sent.action == "get" if sent.include_content is None else sent.include_content
    if sent.action == "list":
        named = sent.variant or sent.name or sent.skill_id
        if named:
            found = [
                await services.skills.get(
                    principal, variant=sent.variant, name=sent.name, skill_id=sent.skill_id
                )
            ]
        else:
            found = await services.skills.catalog(principal)
        entries = [skill_entry(skill, content=content) for skill in found]
        return {"catalog_version": CATALOG_VERSION, "skills": list(entries)}
    if sent.action == "check_update" and sent.current_version is None:
        raise InvalidInput("/current_version is required for check_update; send the version that you have.")
    skill = await services.skills.get(principal, variant=sent.variant, name=sent.name, skill_id=sent.skill_id)
    answer: JsonObject = {"catalog_version": CATALOG_VERSION}
    if sent.current_version is not None and sent.action == "check_update":
        answer["update_available"] = is_newer(skill.version, sent.current_version)
        answer["latest_version"] = skill.version
        if not content:
            return answer
    answer["skill"] = skill_entry(skill, content=content)
    return answer


SKILL = Operation(
    name="hm_skill",
    summary="Get texts that teach how to use this memory and whatever else was published for its agents: "
    "list them, get one, or ask whether yours is the latest. It changes nothing.",
    input=SkillInput,
    output=SkillAnswer,
    access=Access.READ,
    idempotent=True,
    routes=(RestRoute(method="POST", path="/skills"), RestRoute(method="GET", path="/skills")),
    verb=None,
    handler=_skill,
)
