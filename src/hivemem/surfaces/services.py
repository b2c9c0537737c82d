"""What the surfaces need from the composition root."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hivemem.documents.reading import Documents
from hivemem.models.executor import ModelExecutor
from hivemem.ports.clock import Clock
from hivemem.ports.observer import Observers
from hivemem.ports.store import Store
from hivemem.service.access import Access
from hivemem.service.audit import AuditLog
from hivemem.service.change import Change
from hivemem.service.chat_context import ChatContext
from hivemem.service.consenting import Consenting
from hivemem.service.exporting import Exports
from hivemem.service.exporting_to_file import FileExport
from hivemem.service.find_related import FindRelated
from hivemem.service.grants import Grants
from hivemem.service.history import History
from hivemem.service.identities import Identities
from hivemem.service.importing import Importing
from hivemem.service.ingest import Ingest
from hivemem.service.joining import Joining
from hivemem.service.keys import Keys
from hivemem.service.nodes import Nodes
from hivemem.service.oauth import OAuth
from hivemem.service.organizations import Organizations
from hivemem.service.orphans import Orphans
from hivemem.service.overview import Overview
from hivemem.service.passwords import Passwords
from hivemem.service.people import People
from hivemem.service.purging import Purging
from hivemem.service.rate_limits import RateLimits
from hivemem.service.recall import Recall
from hivemem.service.relate import Relate
from hivemem.service.relationships import RelationshipLists
from hivemem.service.remember import Remember
from hivemem.service.sign_ins import SignIns
from hivemem.service.skills import Skills
from hivemem.service.timeline import Timeline
from hivemem.service.tokens import Tokens
from hivemem.service.uploaded_files import UploadedFiles
from hivemem.settings import Settings


class HotGraphNumbers(Protocol):
    """How much of the memory is ready to be searched."""

    loads: int
    evictions: int

    @property
    def graph_ids(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def size_bytes(self) -> int: ...  # noqa: D102


class Services(Protocol):
    """The use cases over one open database; `hivemem.app.open_services` makes one."""

    @property
    def settings(self) -> Settings: ...  # noqa: D102
    @property
    def store(self) -> Store: ...  # noqa: D102
    @property
    def executor(self) -> ModelExecutor: ...  # noqa: D102
    @property
    def hot(self) -> HotGraphNumbers: ...  # noqa: D102
    @property
    def observers(self) -> Observers: ...  # noqa: D102
    @property
    def remember(self) -> Remember: ...  # noqa: D102
    @property
    def recall(self) -> Recall: ...  # noqa: D102
    @property
    def overview(self) -> Overview: ...  # noqa: D102
    @property
    def nodes(self) -> Nodes: ...  # noqa: D102
    @property
    def change(self) -> Change: ...  # noqa: D102
    @property
    def find_related(self) -> FindRelated: ...  # noqa: D102
    @property
    def history(self) -> History: ...  # noqa: D102
    @property
    def orphans(self) -> Orphans: ...  # noqa: D102
    @property
    def relate(self) -> Relate: ...  # noqa: D102
    @property
    def relationships(self) -> RelationshipLists: ...  # noqa: D102
    @property
    def ingest(self) -> Ingest: ...  # noqa: D102
    @property
    def timeline(self) -> Timeline: ...  # noqa: D102
    @property
    def chat_context(self) -> ChatContext: ...  # noqa: D102
    @property
    def exports(self) -> Exports: ...  # noqa: D102
    @property
    def file_export(self) -> FileExport: ...  # noqa: D102
    @property
    def importing(self) -> Importing: ...  # noqa: D102
    @property
    def skills(self) -> Skills: ...  # noqa: D102
    @property
    def tokens(self) -> Tokens: ...  # noqa: D102
    @property
    def files(self) -> UploadedFiles: ...  # noqa: D102
    @property
    def documents(self) -> Documents: ...  # noqa: D102
    @property
    def access(self) -> Access: ...  # noqa: D102
    @property
    def people(self) -> People: ...  # noqa: D102
    @property
    def organizations(self) -> Organizations: ...  # noqa: D102
    @property
    def keys(self) -> Keys: ...  # noqa: D102
    @property
    def passwords(self) -> Passwords: ...  # noqa: D102
    @property
    def audit(self) -> AuditLog: ...  # noqa: D102
    @property
    def purging(self) -> Purging: ...  # noqa: D102
    @property
    def oauth(self) -> OAuth: ...  # noqa: D102
    @property
    def consenting(self) -> Consenting: ...  # noqa: D102
    @property
    def grants(self) -> Grants: ...  # noqa: D102
    @property
    def sign_ins(self) -> SignIns: ...  # noqa: D102
    @property
    def identities(self) -> Identities: ...  # noqa: D102
    @property
    def joining(self) -> Joining: ...  # noqa: D102
    @property
    def rate_limits(self) -> RateLimits: ...  # noqa: D102
    @property
    def clock(self) -> Clock: ...  # noqa: D102

    @property
    def models_loading(self) -> bool:
        """Whether a model is still on its way: neither usable nor given up."""
        ...

    async def close(self) -> None:
        """Finish running writes and release files, threads and models."""
        ...
