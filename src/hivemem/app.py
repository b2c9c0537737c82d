"""The composition root: from settings to running use cases. Nothing else knows which parts are real."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from hivemem.documents.limits import DocumentLimits
from hivemem.documents.reading import Documents
from hivemem.domain.graph import GraphId
from hivemem.errors import HivememError, InvalidInput, NotFound
from hivemem.models.download import repository_files
from hivemem.models.executor import ModelExecutor
from hivemem.models.hashing import HashingEmbedder
from hivemem.models.http import HttpEmbedder, HttpReranker, RerankShape
from hivemem.models.onnx import OnnxEmbedder, OnnxReranker
from hivemem.models.passages import PassageLimits
from hivemem.models.weights import EMBEDDER, RERANKER, directory_files, packaged_files
from hivemem.ports.files import Files
from hivemem.ports.models import Embedder, Reranker
from hivemem.ports.observer import Observers
from hivemem.ports.rates import RateCounts
from hivemem.ports.store import Store
from hivemem.projection.hot_graphs import HotGraphs
from hivemem.retrieval.ranking import Calibration
from hivemem.service.access import Access
from hivemem.service.audit import AuditLog
from hivemem.service.change import Change
from hivemem.service.chat_context import ChatContext
from hivemem.service.consenting import Consenting
from hivemem.service.database_urls import DatabaseUrl, graph_filler, open_source
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
from hivemem.service.leased_work import LeasedWork
from hivemem.service.nodes import Nodes
from hivemem.service.oauth import OAuth
from hivemem.service.organizations import Organizations
from hivemem.service.orphans import Orphans
from hivemem.service.overview import Overview
from hivemem.service.passwords import Passwords
from hivemem.service.people import People
from hivemem.service.purging import Purging
from hivemem.service.rate_limits import RateLimits
from hivemem.service.recall import Recall, RerankLimits
from hivemem.service.reembed import Reembed
from hivemem.service.relate import Relate
from hivemem.service.relationships import RelationshipLists
from hivemem.service.remember import Remember
from hivemem.service.schema import needed_driver
from hivemem.service.session_groups import SessionGroups
from hivemem.service.session_touches import SessionTouches
from hivemem.service.sign_ins import SignIns
from hivemem.service.skills import Skills
from hivemem.service.timeline import Timeline
from hivemem.service.tokens import Tokens
from hivemem.service.uploaded_files import UploadedFiles
from hivemem.settings import Settings
from hivemem.storage.files_folder import FolderFiles, graph_folder
from hivemem.storage.rates_memory import MemoryRateCounts
from hivemem.storage.sqlite import SqliteStore

# Larger turns end less often with a core that has nothing left to do (3 % of a recall against 8), smaller
# ones let other callers in sooner.
_MODEL_TURN_TEXTS = 16
_MODEL_RETRY_SECONDS = 60.0
_EMBED_RETRY_SECONDS = 5.0
_SWEEP_EVERY_SECONDS = 3_600.0
_COLLECT_DELAY_SECONDS = 600.0
_COLLECT_EVERY_SECONDS = 24 * 3600.0
_PURGE_EVERY_SECONDS = 180.0
_FORGET_EVERY_SECONDS = 3.0

log = logging.getLogger(__name__)
ModelT = TypeVar("ModelT")


class SystemClock:
    """The machine's time, and random ids."""

    def now(self) -> datetime:
        """The present, aware UTC."""
        return datetime.now(UTC)

    def new_id(self, prefix: str) -> str:
        """`prefix`, an underscore and 80 random bits in hex."""
        return f"{prefix}_{secrets.token_hex(10)}"


@dataclass(slots=True, kw_only=True)
class OpenServices:
    """The use cases over one open database, and what runs behind them."""

    settings: Settings
    clock: SystemClock
    store: Store
    executor: ModelExecutor
    hot: HotGraphs
    observers: Observers
    remember: Remember
    recall: Recall
    overview: Overview
    nodes: Nodes
    find_related: FindRelated
    relationships: RelationshipLists
    orphans: Orphans
    history: History
    change: Change
    relate: Relate
    ingest: Ingest
    timeline: Timeline
    chat_context: ChatContext
    tokens: Tokens
    skills: Skills
    exports: Exports
    file_export: FileExport
    importing: Importing
    files: UploadedFiles
    documents: Documents
    access: Access
    people: People
    organizations: Organizations
    keys: Keys
    passwords: Passwords
    audit: AuditLog
    purging: Purging
    oauth: OAuth
    consenting: Consenting
    grants: Grants
    sign_ins: SignIns
    identities: Identities
    joining: Joining
    rate_limits: RateLimits
    touches: SessionTouches
    groups: SessionGroups
    background: Background

    @property
    def models_loading(self) -> bool:
        """Whether a model is still on its way: neither usable nor given up."""
        return self.background.models_loading

    async def close(self) -> None:
        """Finish running writes and release files, threads and models. Safe to call twice."""
        await self.background.close()
        await self.exports.close()
        await self.touches.written()
        await self.access.written()
        await self.groups.written()
        await asyncio.to_thread(self.executor.close)
        await self.store.close()


class Background:
    """What goes on beside requests: models, nodes that wait for a vector, files that nothing refers to."""

    def __init__(self, settings: Settings, executor: ModelExecutor, hot: HotGraphs, store: Store) -> None:
        self._settings = settings
        self._executor = executor
        self._hot = hot
        self._store = store
        self._reembed = Reembed(store=store, executor=executor)
        self._leased = LeasedWork(store=store, clock=SystemClock())
        self._waiting: set[GraphId] = set()
        self._woken = asyncio.Event()
        self._loading: asyncio.Task[None] | None = None
        self._embedding: asyncio.Task[None] | None = None
        self._collecting: asyncio.Task[None] | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self._purging: asyncio.Task[None] | None = None
        self._forgetting: asyncio.Task[None] | None = None
        self._removal_woken = asyncio.Event()
        self.models_loading = False

    def load_models(self) -> None:
        """Load both models, and try again later what could not be loaded, until `close`."""
        self.models_loading = True
        self._loading = asyncio.create_task(self._load_models(), name="load models")

    def embed_pending(self, graph_id: GraphId) -> None:
        """Embed the graph's nodes that have no vector, soon."""
        self._waiting.add(graph_id)
        self._woken.set()

    def keep_embedding(self) -> None:
        """Embed what waits now and later, in every graph, until `close`."""
        if self._embedding is None:
            self._embedding = asyncio.create_task(self._embed_all(), name="embed pending nodes")

    def keep_collecting(self, files: UploadedFiles) -> None:
        """Remove once a day the bytes that no file refers to, until `close`."""
        self._collecting = asyncio.create_task(self._collect_all(files), name="collect files")

    def keep_sweeping(self, exports: Exports) -> None:
        """Drop the documents of exports whose time is over, at once and once an hour, until `close`."""
        self._sweeping = asyncio.create_task(self._sweep_all(exports), name="sweep exports")

    def keep_purging(self, purging: Purging) -> None:
        """Remove what is left of removed graphs, at once and every few minutes, until `close`.

        Search indexes of graphs that were removed through another server go within seconds.
        """
        self._purging = asyncio.create_task(self._purge_all(purging), name="purge removed graphs")
        self._forgetting = asyncio.create_task(self._forget_all(purging), name="forget removed graphs")

    def purge_soon(self) -> None:
        """Remove what is left of removed graphs now: one was just removed."""
        self._removal_woken.set()

    async def close(self) -> None:
        """Stop; what is half done is found again at the next start."""
        begun = (
            *(self._loading, self._embedding, self._collecting, self._sweeping),
            *(self._purging, self._forgetting),
        )
        tasks = [task for task in begun if task is not None]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _load_models(self) -> None:
        """Load both models; one that fails is tried again, since files can be mended and hosts return."""
        settings, executor = self._settings, self._executor
        missing = True
        while missing:
            if executor.embedder is None:
                embedder, problem = await _loaded(lambda: load_embedder(settings))
                executor.use_embedder(embedder, problem)
                if embedder is not None:
                    self._hot.use_model(embedder.model_id, embedder.dimension)
            wants_reranker = settings.reranker != "none"
            if executor.reranker is None and wants_reranker:
                reranker, problem = await _loaded(lambda: load_reranker(settings))
                executor.use_reranker(reranker, problem)
            self.models_loading = False
            missing = executor.embedder is None or (wants_reranker and executor.reranker is None)
            if missing:
                await asyncio.sleep(_MODEL_RETRY_SECONDS)

    async def _collect_all(self, files: UploadedFiles) -> None:
        while True:
            # Not at once: a server that starts has more urgent work.
            await asyncio.sleep(_COLLECT_DELAY_SECONDS)
            for graph_id in await self._store.graph_ids():
                try:
                    await self._leased.run(f"collect {graph_id}", partial(files.collect, graph_id))
                except HivememError as error:
                    log.warning("files of %s are collected tomorrow: %s", graph_id, error.message)
            await asyncio.sleep(_COLLECT_EVERY_SECONDS)

    async def _sweep_all(self, exports: Exports) -> None:
        while True:
            try:
                for graph_id in await self._store.graph_ids():
                    await exports.sweep(graph_id)
            except HivememError as error:
                log.warning("old exports are dropped in an hour: %s", error.message)
            await asyncio.sleep(_SWEEP_EVERY_SECONDS)

    async def _purge_all(self, purging: Purging) -> None:
        while True:
            self._removal_woken.clear()
            try:
                await purging.forget_removed()
                await self._leased.run("purge", purging.run)
            except HivememError as error:
                log.warning("removed graphs are purged later: %s", error.message)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._removal_woken.wait(), _PURGE_EVERY_SECONDS)

    async def _forget_all(self, purging: Purging) -> None:
        while True:
            await asyncio.sleep(_FORGET_EVERY_SECONDS)
            try:
                await purging.forget_removed()
            except HivememError as error:
                log.debug("indexes of removed graphs are dropped later: %s", error.message)

    async def _embed_all(self) -> None:
        self._waiting.update(await self._store.graph_ids())
        while True:
            elsewhere: set[GraphId] = set()
            while self._waiting and self._executor.embedder is not None:
                graph_id = self._waiting.pop()
                try:
                    alone = await self._leased.run(f"embed {graph_id}", partial(self._reembed.run, graph_id))
                except NotFound:
                    # It was removed meanwhile.
                    continue
                except HivememError as error:
                    log.warning("embedding of %s waits: %s", graph_id, error.message)
                    self._waiting.add(graph_id)
                    break
                if not alone:
                    elsewhere.add(graph_id)
            # Another server is at these; they are looked at again, should it stop before the end.
            self._waiting |= elsewhere
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), _EMBED_RETRY_SECONDS if self._waiting else None)


async def open_store(settings: Settings, observers: Observers | None = None) -> Store:
    """Open the database that the settings name; the folder of a file must exist.

    Raises:
        InvalidInput: `database_url` cannot be read, or its driver is not installed.
        Conflict: The schema is outdated and `database_migrations` is manual.
        Corruption: Not a hivemem database, or damaged.
        Unavailable: It cannot be opened, or is locked for too long.
    """
    if not settings.database_url:
        return await SqliteStore.open(
            settings.database_path, busy_timeout_seconds=settings.busy_timeout_seconds, observers=observers
        )
    with needed_driver():
        from hivemem.storage.postgres import PostgresStore
    return await PostgresStore.open(
        settings.database_url,
        connections=settings.database_connections,
        wait_seconds=settings.busy_timeout_seconds,
        statement_seconds=settings.database_statement_seconds,
        migrate=settings.database_migrations == "automatic",
        observers=observers,
    )


def database_of(settings: Settings) -> DatabaseUrl:
    """The database that the settings name, for reading and writing its rows beside the store."""
    if settings.database_url:
        return DatabaseUrl(path=None, url=settings.database_url)
    return DatabaseUrl(path=settings.database_path, url="")


def files_of_graph(settings: Settings, store: Store) -> Callable[[GraphId], Files]:
    """Where the bytes of a graph's files are: in the database when it is PostgreSQL, else in a folder."""
    if settings.database_url:
        from hivemem.storage.postgres import PostgresStore

        assert isinstance(store, PostgresStore)
        return store.blobs
    folder = settings.data_dir / "files"
    return lambda graph_id: FolderFiles(graph_folder(folder, graph_id))


async def open_services(settings: Settings, *, background: bool = False, models: bool = True) -> OpenServices:
    """Open the database and start loading the models. `settings.data_dir` must exist.

    Args:
        settings: Checked values.
        background: Embed in the background what was stored without a vector; for processes that stay.
        models: Whether a model is needed at all. Loading takes longer than most commands do.

    Raises:
        InvalidInput: `database_url` cannot be used.
        Conflict: The schema is outdated, and is not to be migrated.
        Corruption: The database is not hivemem's, or is damaged.
        Unavailable: The database cannot be opened or is locked for too long.
    """
    observers = Observers()
    store = await open_store(settings, observers)
    clock, limits = SystemClock(), settings.limits
    executor = ModelExecutor(
        None,
        None,
        embedder_problem="the embedding model is still being loaded" if models else "no model was asked for",
        # Without a reranker by choice nothing is degraded, so there is no problem to tell.
        reranker_problem=None if settings.reranker == "none" else "the reranker is still being loaded",
        max_queued_texts=settings.model_queue_texts,
        batch_texts=_MODEL_TURN_TEXTS,
        observers=observers,
    )
    groups = SessionGroups(store=store, clock=clock)
    touches = SessionTouches(store=store, clock=clock, on_call=groups.called)
    hot = HotGraphs(store, model_id="", dimension=0, max_bytes=settings.projection_max_bytes)
    work = Background(settings, executor, hot, store)
    if models:
        work.load_models()
    if background:
        work.keep_embedding()
    remember = Remember(
        store=store,
        executor=executor,
        clock=clock,
        limits=limits,
        on_pending=work.embed_pending if background else None,
        on_call=groups.called,
    )
    documents = Documents(
        limits=DocumentLimits(max_file_bytes=settings.max_file_bytes), max_processes=settings.file_processes
    )
    files_of = files_of_graph(settings, store)
    files = UploadedFiles(
        store=store,
        files_of=files_of,
        documents=documents,
        remember=remember,
        clock=clock,
        limits=limits,
        keep_forgotten=timedelta(days=settings.forgotten_file_days),
    )
    audit = AuditLog(store=store, clock=clock)
    passwords, access = Passwords(), Access(store=store, clock=clock)
    rate_limits = RateLimits(counts=_rate_counts(settings, store), clock=clock, rates=settings.rates)
    people = People(
        store=store,
        passwords=passwords,
        audit=audit,
        rate_limits=rate_limits,
        limits=limits,
        clock=clock,
        on_removed=work.purge_soon,
    )
    organizations = Organizations(
        store=store, audit=audit, limits=limits, clock=clock, on_removed=work.purge_soon
    )
    purging = Purging(store=store, files_of=files_of, hot=hot, audit=audit, clock=clock)
    oauth = OAuth(store=store, audit=audit, clock=clock, private_schemes=settings.oauth_redirect_schemes)
    sign_ins = SignIns(
        store=store,
        access=access,
        people=people,
        passwords=passwords,
        audit=audit,
        rate_limits=rate_limits,
        clock=clock,
        creates_accounts=settings.oidc_accounts == "create",
    )
    open_rows = partial(open_source, database_of(settings))
    exports = Exports(
        store=store,
        open_rows=open_rows,
        clock=clock,
        retention=timedelta(hours=settings.export_retention_hours),
    )
    if background:
        work.keep_collecting(files)
        work.keep_sweeping(exports)
        work.keep_purging(purging)
    return OpenServices(
        settings=settings,
        clock=clock,
        store=store,
        executor=executor,
        hot=hot,
        observers=observers,
        remember=remember,
        recall=Recall(
            store=store,
            hot=hot,
            executor=executor,
            clock=clock,
            limits=limits,
            calibration=Calibration(
                floor=settings.relevance_floor,
                english_embedder=settings.embedder == "bundled",
                english_reranker=settings.reranker == "bundled",
            ),
            rerank=RerankLimits(
                depth=settings.rerank_depth,
                context_depth=settings.rerank_context_depth,
                tokens=settings.rerank_tokens,
                budget_seconds=settings.rerank_budget_seconds,
            ),
            regex_seconds=settings.regex_max_seconds,
            touches=touches,
            observers=observers,
        ),
        overview=Overview(store=store, hot=hot),
        nodes=Nodes(store=store, limits=limits),
        find_related=FindRelated(store=store, hot=hot, executor=executor, limits=limits, touches=touches),
        relationships=RelationshipLists(store=store),
        orphans=Orphans(store=store, hot=hot),
        history=History(store=store, executor=executor, clock=clock),
        change=Change(store=store, clock=clock, limits=limits),
        relate=Relate(store=store, clock=clock, limits=limits),
        ingest=Ingest(store=store, remember=remember, limits=limits),
        access=access,
        people=people,
        organizations=organizations,
        keys=Keys(store=store, audit=audit, limits=limits, clock=clock),
        passwords=passwords,
        audit=audit,
        purging=purging,
        oauth=oauth,
        consenting=Consenting(store=store, oauth=oauth, audit=audit, clock=clock),
        grants=Grants(store=store, audit=audit, clock=clock),
        sign_ins=sign_ins,
        identities=Identities(store=store, audit=audit, clock=clock),
        joining=Joining(
            people=people,
            organizations=organizations,
            sign_ins=sign_ins,
            creates_accounts=settings.accounts_by_invitation == "on",
        ),
        rate_limits=rate_limits,
        timeline=Timeline(store=store, clock=clock, limits=limits),
        chat_context=ChatContext(store=store, touches=touches, groups=groups),
        tokens=Tokens(store=store, clock=clock, limits=limits),
        skills=Skills(store=store, clock=clock),
        exports=exports,
        file_export=FileExport(open_rows=open_rows, files_of=files_of, clock=clock),
        importing=Importing(
            store=store,
            remember=remember,
            fill=graph_filler(database_of(settings), busy_timeout_seconds=settings.busy_timeout_seconds),
            files_of=files_of,
            clock=clock,
            limits=limits,
        ),
        files=files,
        documents=documents,
        touches=touches,
        groups=groups,
        background=work,
    )


def _rate_counts(settings: Settings, store: Store) -> RateCounts:
    """Where calls are counted: with PostgreSQL in the database, since a user may reach several servers."""
    if not settings.database_url:
        return MemoryRateCounts()
    from hivemem.storage.postgres import PostgresStore

    assert isinstance(store, PostgresStore)
    return store.rate_counts


async def _loaded(load: Callable[[], ModelT]) -> tuple[ModelT | None, str | None]:
    try:
        return await asyncio.to_thread(load), None
    except HivememError as error:
        log.warning("a model could not be loaded: %s", error.message)
        return None, error.message


def load_embedder(settings: Settings) -> Embedder:
    """The embedder that `settings.embedder` names.

    Raises:
        InvalidInput: The setting has another form than the documented ones.
        Unavailable: A file or host cannot be reached.
        Corruption: A file is not what it must be.
    """
    kind, _, rest = settings.embedder.partition(":")
    threads = settings.model_threads or None
    passages = PassageLimits()
    if kind == "hashing":
        return HashingEmbedder(int(rest) if rest else 384, immediate=True)
    if kind == "openai":
        url, model = _url_and_model(settings.embedder, rest)
        return HttpEmbedder(url, model, api_key=settings.embedder_api_key or None)
    if kind == "bundled":
        files = packaged_files(EMBEDDER)
    elif kind == "directory":
        files = directory_files(Path(rest).expanduser())
    elif kind == "huggingface":
        files = repository_files(rest, cache=Path(settings.data_dir) / "models")
    else:
        raise InvalidInput(f"the setting embedder is {settings.embedder!r}; see `hivemem config reference`.")
    return OnnxEmbedder(files, threads=threads, passages=passages)


def load_reranker(settings: Settings) -> Reranker:
    """The cross-encoder that `settings.reranker` names; the errors are those of `load_embedder`."""
    kind, _, rest = settings.reranker.partition(":")
    key = settings.reranker_api_key or None
    if kind == "tei":
        return HttpReranker(rest, "tei", shape=RerankShape.TEI, api_key=key)
    if kind in (RerankShape.COHERE, RerankShape.JINA):
        url, model = _url_and_model(settings.reranker, rest)
        return HttpReranker(url, model, shape=RerankShape(kind), api_key=key)
    if kind == "bundled":
        files = packaged_files(RERANKER)
    elif kind == "directory":
        files = directory_files(Path(rest).expanduser())
    else:
        raise InvalidInput(f"the setting reranker is {settings.reranker!r}; see `hivemem config reference`.")
    return OnnxReranker(files, threads=settings.model_threads or None)


def _url_and_model(setting: str, rest: str) -> tuple[str, str]:
    url, separator, model = rest.rpartition("#")
    if not separator or not url or not model:
        raise InvalidInput(f"the setting {setting!r} lacks its model; write KIND:BASE_URL#MODEL.")
    return url, model
