"""A state machine: people, organizations, every kind of credential, and whatever they might try.

After each request it compares with `rules.World`: the status, the marks and ids in the answer, and which rows
of the database changed.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from hivemem.domain.access import Scope
from hivemem.domain.accounts import Role
from hivemem.surfaces.operations import BY_NAME, REST_PREFIX
from tests.isolation.rules import (
    ADMIN,
    DENIED,
    MEMBER,
    OWNER,
    WRITERS,
    Arguments,
    Credential,
    Graph,
    Organization,
    Person,
    World,
)
from tests.isolation.server import Fingerprint, Reply, Running, running_server

ADMIN_PREFIX = "/api/v1/admin"
KEYS = ["fact_a", "fact_b", "person_c", "decision_d", "user_profile", "artifact_sheet"]
SESSIONS = ["default", "talk", "s-ada", "s-ben", "s-cleo"]
QUERIES = ["memory", "what is remembered about the shared decision", "sheet north"]
NONSENSE = "graph_ffffffffffffffffffff"

READS = (
    "hm_get_overview", "hm_recall", "hm_get_nodes", "hm_find_related", "list_relationships",
    "hm_list_orphans", "hm_timeline", "hm_list_files", "hm_tabular", "hm_get_chat_context", "node_history",
    "hm_skill",
)  # fmt: skip
WRITES = (
    "hm_store", "hm_update", "hm_forget", "hm_add_relationships", "hm_ingest", "hm_upload_file",
    "hm_timeline_write", "restore_node",
)  # fmt: skip
OF_ORGANIZATION = ("hm_get_overview", "hm_get_nodes", "hm_find_related", "hm_list_orphans")
MENTIONED = 400
"""In answers to requests that name an organization which is not the caller's."""

pick = st.integers(min_value=0, max_value=10_000)


class Isolation(RuleBasedStateMachine):
    """Three people and two organizations on one server."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="hivemem-isolation-"))
        self.stack = AsyncExitStack()
        self.world = World()
        # What anybody may have come to know, and may try anywhere.
        self.relationship_ids: list[str] = ["edge_unknown"]
        self.file_ids: list[str] = ["file_unknown"]
        self.exports: list[tuple[str, str]] = [("export_unknown", "token")]
        self.cursors: list[str] = ["cursor"]
        self.number = 0
        self.served: Running
        self.before: Fingerprint

    @initialize()
    def populate(self) -> None:
        self.loop.run(self._populate())

    def teardown(self) -> None:
        self.loop.run(self.stack.aclose())
        self.loop.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # What people do -------------------------------------------------------------------------------

    @rule(who=pick, what=st.sampled_from(READS), how=pick, over_mcp=st.booleans(), header=pick)
    def read(self, who: int, what: str, how: int, over_mcp: bool, header: int) -> None:
        self._operate(who, what, how, over_mcp, header)

    @rule(who=pick, what=st.sampled_from(WRITES), how=pick, over_mcp=st.booleans(), header=pick)
    def write(self, who: int, what: str, how: int, over_mcp: bool, header: int) -> None:
        self._operate(who, what, how, over_mcp, header)

    @rule(who=pick, how=pick, over_mcp=st.booleans(), header=pick)
    def report_tokens(self, who: int, how: int, over_mcp: bool, header: int) -> None:
        self._operate(who, "hm_tokens", how, over_mcp, header)

    @rule(who=pick, step=st.sampled_from(("order", "state", "download")), how=pick, header=pick)
    def export(self, who: int, step: str, how: int, header: int) -> None:
        self.loop.run(self._export(self._credential(who), step, how, self._header(header)))

    @rule(who=pick, what=pick, how=pick)
    def administer(self, who: int, what: int, how: int) -> None:
        actions = (
            self._show_user, self._show_organization, self._list, self._freeze, self._write_mode,
            self._put_member, self._put_member, self._remove_member, self._new_key, self._new_key,
            self._revoke_key, self._remove_graph, self._run_the_server,
        )  # fmt: skip
        self.loop.run(actions[what % len(actions)](self._credential(who), how))

    # The house ------------------------------------------------------------------------------------

    async def _populate(self) -> None:
        self.served = await self.stack.enter_async_context(running_server(self.folder))
        services = self.served.services
        operator = await services.access.local_principal()
        first = await services.people.user(operator, None)
        self.world.people["root"] = Person("root", first.user_id, operator=True)
        self._add_graph("root", "root", operator.graph_id, is_default=True)
        for name in ("ada", "ben", "cleo"):
            user, graph = await services.people.add_user(operator, name)
            self.world.people[name] = Person(name, user.user_id)
            self._add_graph(name, name, graph.graph_id, is_default=True)
        second = await services.people.add_graph(operator, "second", "ada")
        self._add_graph("adatwo", "ada", second.graph_id)
        members = {"acme": {"ada": OWNER, "ben": ADMIN, "cleo": MEMBER}, "bolt": {"ben": OWNER}}
        for name, roles in members.items():
            [owner] = [person for person, role in roles.items() if role == OWNER]
            made = await services.organizations.add(operator, name, owner)
            self.world.organizations[name] = Organization(name, made.organization_id, {owner: OWNER})
            self.world.graphs[name] = Graph(name, made.graph_id, organization=name)
            for person, role in roles.items():
                if role != OWNER:
                    await services.organizations.put_member(operator, name, person, Role(role), is_new=True)
                    self.world.organizations[name].roles[person] = role
        for person, graph in (
            ("ada", "ada"), ("ada", "adatwo"), ("ada", "acme"), ("ben", "ben"), ("ben", "bolt"),
            ("cleo", "cleo"), ("cleo", "acme"), ("root", "root"),
        ):  # fmt: skip
            role = self.world.role(person, self.world.graphs[graph].organization)
            for scope in ("owner", "member") if role in (None, *WRITERS) else ("member",):
                await self._make_key(person, graph, scope, admin=scope == "owner")
        for person in ("ada", "ben", "cleo"):
            scopes = ("memory:read", "memory:write", "memory:admin")
            for number in (1, 2, 3):
                await self._make_token(person, scopes[:number])
        self.world.credentials.append(
            Credential("hm_" + "0" * 64, "nobody", "ada", "ada", writes=True, admin=True, alive=False)
        )
        await self._fill()
        await services.organizations.write_mode(
            operator, self.world.organizations["acme"].organization_id, self.world.people["ben"].user_id
        )
        self.world.people["ben"].writes_to = "acme"
        self.before = await self.served.settled()

    async def _fill(self) -> None:
        """In every graph memories, a relationship, a file and a line of the diary, with the graph's mark."""
        for graph in self.world.graphs.values():
            [secret] = [
                one.secret
                for one in self.world.credentials
                if one.graph == graph.label and one.writes and one.bound and one.key_id
            ][:1]
            for key in ("fact_a", "person_c"):
                related = {"to_key": "fact_b", "relationship": f"is remembered with {graph.mark}"}
                made = await self.served.mcp(
                    "hm_store",
                    {
                        "key": key,
                        "description": f"A memory of {graph.mark} about the shared decision",
                        "data": {"mark": graph.mark},
                        "relationships": [related],
                        "session_id": "talk",
                    },
                    secret,
                    None,
                )
                assert made.status == 200, made.text
                self._learn(made)
            for tool in ("hm_upload_file", "hm_timeline_write"):
                made = await self.served.mcp(tool, self._arguments(tool, 7, graph.mark), secret, None)
                assert made.status == 200, made.text
                self._learn(made)

    def _add_graph(self, label: str, person: str, graph_id: str, *, is_default: bool = False) -> None:
        self.world.graphs[label] = Graph(label, graph_id, user=person, is_default=is_default)

    async def _make_key(self, person: str, graph: str, scope: str, *, admin: bool) -> None:
        services = self.served.services
        secret, key = await services.keys.create(
            await services.access.local_principal(),
            name=f"{person} {graph} {scope}",
            user=self.world.people[person].user_id,
            graph_id=self.world.graphs[graph].graph_id,
            scope=Scope(scope),
            admin=admin,
        )
        self.world.credentials.append(
            Credential(secret, key.name, person, graph, scope == "owner", admin, key_id=key.key_id)
        )

    async def _make_token(self, person: str, scopes: tuple[str, ...]) -> None:
        user, graph = self.world.people[person], self.world.graphs[person]
        admin = "memory:admin" in scopes
        secret = await self.served.token(user.user_id, graph.graph_id, scopes, admin=admin)
        writes = "memory:write" in scopes
        self.world.credentials.append(
            Credential(secret, f"{person} {scopes[-1]}", person, person, writes, admin, bound=False)
        )

    # Requests -------------------------------------------------------------------------------------

    def _credential(self, number: int) -> Credential:
        return self.world.credentials[number % len(self.world.credentials)]

    def _header(self, number: int) -> str | None:
        """Mostly none, else any graph of the server, or one that is not there."""
        ids = [graph.graph_id for graph in self.world.graphs.values()] + [NONSENSE]
        return None if number % 3 else ids[number // 3 % len(ids)]

    def _operate(self, who: int, what: str, how: int, over_mcp: bool, header: int) -> None:
        self.loop.run(self._operated(self._credential(who), what, how, over_mcp, self._header(header)))

    async def _operated(
        self, credential: Credential, what: str, how: int, over_mcp: bool, header: str | None
    ) -> None:
        operation = BY_NAME[what]
        over_mcp = (over_mcp and operation.tool) or not operation.routes
        works = self.world.works(credential)
        selected = self.world.selected(credential, header) if works else None
        target = None if selected is None else self.world.target(credential, selected)
        arguments = self._arguments(what, how, target.mark if target is not None else DENIED)
        reply = await self._sent(credential, what, arguments, over_mcp, header)
        note = f"{credential.name} {what} {arguments} {header} -> {reply.status} {reply.text[:300]}"

        readable: set[str] = set()
        changed: set[str] = set()
        talked: set[str] = set()
        if not works:
            assert reply.status == 401, note
        elif selected is None:
            assert reply.status == 403, note
        elif what in WRITES:
            assert (reply.status == 403) == (target is None), note
            if target is not None:
                readable = changed = {target.label}
        else:
            chosen = self.world.chosen(credential.person, arguments.get("organization_id"))
            readable = {selected.label}
            if what == "hm_recall":
                readable = self.world.recalled(credential.person, selected, arguments.get("organization_id"))
            elif what in OF_ORGANIZATION and isinstance(chosen, Organization):
                readable = {self.world.graph_of(chosen.name).label}
            if what in (*OF_ORGANIZATION, "hm_recall") and chosen == "refused":
                assert reply.status == MENTIONED, note
                readable = set()
            else:
                assert reply.status not in (401, 403), note
            graphs = [self.world.graphs[label] for label in readable]
            talked = {one.label for one in graphs if self.world.notes_conversations(credential, one)}
            if what == "hm_tokens":
                changed = {selected.label}
        assert reply.status < 500, note
        self._learn(reply)
        self._check_text(reply, readable, note, arguments, header)
        await self._check_rows(changed, talked | changed, note)

    async def _sent(
        self, credential: Credential, what: str, arguments: Arguments, over_mcp: bool, header: str | None
    ) -> Reply:
        if over_mcp:
            return await self.served.mcp(what, arguments, credential.secret, header)
        route = BY_NAME[what].routes[0]
        path = route.path
        body = dict(arguments)
        for name in route.in_path:
            path = path.replace("{" + name + "}", str(body.pop(name)))
        if route.method == "GET":
            query = {name: str(value) for name, value in body.items()}
            return await self.served.rest("GET", route.prefix + path, credential.secret, header, query=query)
        return await self.served.rest("POST", route.prefix + path, credential.secret, header, arguments)

    def _arguments(self, what: str, how: int, mark: str) -> Arguments:
        """Arguments that `how` chooses: keys that every graph has, and ids from whichever graph."""

        def one(values: list[Any], shift: int) -> Any:
            return values[how // shift % len(values)]

        organizations = [organization.organization_id for organization in self.world.organizations.values()]
        organization = {"organization_id": one([None, "none", "org_ffffffffffffffffffff", *organizations], 1)}
        session = {"session_id": one(SESSIONS, 7)}
        key, other = one(KEYS, 3), one(KEYS, 11)
        relationship = one(self.relationship_ids, 2)
        text = f"Another memory of {mark} number {how}"
        related = [{"from_key": key, "to_key": other, "relationship": f"goes with {mark} {how % 5}"}]
        sheet = base64.b64encode(f"region,mark\nnorth,{mark}\n".encode()).decode()
        made: dict[str, Arguments] = {
            "hm_get_overview": organization,
            "hm_recall": {
                "query": ".*" if how % 2 else one(QUERIES, 5), "force_regex": bool(how % 2),
                "max_results": 50, **organization, **session,
            },
            "hm_get_nodes": {
                "keys": KEYS, "relationship_detail": one(["summary", "full"], 2), **organization,
            },
            "hm_find_related": {"start_node": key, **organization, **session},
            "list_relationships": {"key": key},
            "hm_list_orphans": {
                "limit": 1 + how % 3, "cursor": one([None, *self.cursors], 7), **organization,
            },
            "hm_timeline": {"query": one([None, "memory", mark], 3), "node_key": one([None, *KEYS], 7)},
            "hm_list_files": {"search": one([None, "sheet"], 2)},
            "hm_tabular": {"mode": "outline", "file_id": one(self.file_ids, 1)},
            "hm_get_chat_context": session,
            "node_history": {"key": key},
            "hm_skill": {"action": "list"},
            "hm_store": {
                "key": key, "description": text, "relationships": related if how % 2 else [], **session,
            },
            "hm_update": {"edge_id": relationship, "description": text} if how % 3 == 0 else {
                "key": key, "description": text
            },
            "hm_forget": {"edge_id": relationship} if how % 2 else {"key": key},
            "hm_add_relationships": {"relationships": related},
            "hm_ingest": {"text": f"Ada keeps {mark}. Ben uses {mark} daily."},
            "hm_upload_file": {
                "filename": f"sheet{how % 4}.csv", "content_base64": sheet, "node_key": "artifact_sheet",
                "description": f"A sheet of {mark}",
            },
            "hm_timeline_write": {"summary": text},
            "restore_node": {"key": key},
            "hm_tokens": self._tokens(how),
        }  # fmt: skip
        return {name: value for name, value in made[what].items() if value is not None}

    def _tokens(self, how: int) -> Arguments:
        self.number += 1
        return {
            "ai_tool": "t", "provider": "p", "model": "m", "session_id": "s", "turn_sequence": self.number,
            "measurement_quality": "self_estimated", "input_tokens": how, "output_tokens": 1,
            "total_tokens": how + 1, "estimation_bias": "neutral",
            "segments": [{"category": "coding", "weight": 100}],
        }  # fmt: skip

    async def _export(self, credential: Credential, step: str, how: int, header: str | None) -> None:
        export_id, token = self.exports[how % len(self.exports)]
        path = f"{REST_PREFIX}/exports"
        if step == "order":
            reply = await self.served.rest("POST", path, credential.secret, header)
        elif step == "state":
            reply = await self.served.rest("GET", f"{path}/{export_id}", credential.secret, header)
        else:
            reply = await self.served.rest(
                "GET", f"{path}/{export_id}/download", credential.secret, header, query={"token": token}
            )
        note = f"{credential.name} export {step} {export_id} {header} -> {reply.status} {reply.text[:200]}"
        works = self.world.works(credential)
        selected = self.world.selected(credential, header) if works else None
        if not works:
            assert reply.status == 401, note
        elif selected is None:
            assert reply.status == 403, note
        else:
            assert reply.status in (200, 202, 404, 409, 410, 503), note
        assert reply.status < 500 or reply.status == 503, note
        if step != "download" and reply.status in (200, 202):
            self.exports.append((reply.body["export_id"], _token(reply.body.get("download_url", ""))))
        self._check_text(reply, set() if selected is None else {selected.label}, note, {}, header)
        await self._check_rows(set(), set(), note)

    # Administration -------------------------------------------------------------------------------

    async def _admin(
        self,
        credential: Credential,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Any = None,
        log_of: Organization | None = None,
    ) -> tuple[Reply, str, bool]:
        """The reply, a note for failures, and whether the credential reaches the administration at all.

        The log of an organization tells those who decide about it who did what there, and by which key: one
        at its memory, or one that reaches the administration.
        """
        reply = await self.served.rest(method, ADMIN_PREFIX + path, credential.secret, None, body, query)
        note = f"{credential.name} {method} {path} {body} {query} -> {reply.status} {reply.text[:300]}"
        assert reply.status < 500, note
        if not self.world.works(credential):
            assert reply.status == 401, note
            return reply, note, False
        if not credential.admin:
            assert reply.status == 403, note
            return reply, note, False
        sent = json.dumps([path, body, query])
        unseen = self.world.all_ids() - self.world.visible_ids(credential.person)
        if log_of is not None and self.world.decides(credential.person, log_of.name):
            unseen -= {one.user_id for one in self.world.people.values()}
            label = self.world.graph_of(log_of.name).label
            unseen -= {one.key_id for one in self.world.credentials if one.graph == label or one.admin}
        assert not [one for one in unseen if one in reply.text and one not in sent], note
        return reply, note, True

    async def _done(self, note: str, *, accounts: bool) -> None:
        """Whether the accounts may have changed; no memory ever does."""
        if accounts:
            self.before = Fingerprint(
                self.before.memory, self.before.conversations, (await self.served.settled()).accounts
            )
        await self._check_rows(set(), set(), note)

    async def _show_user(self, credential: Credential, how: int) -> None:
        person = list(self.world.people.values())[how % len(self.world.people)]
        reply, note, admitted = await self._admin(credential, "GET", f"/users/{person.user_id}")
        if admitted:
            allowed = self.world.people[credential.person].operator or person.name == credential.person
            assert reply.status == (200 if allowed else 403), note
        await self._done(note, accounts=False)

    async def _show_organization(self, credential: Credential, how: int) -> None:
        organization = self._organization(how)
        reply, note, admitted = await self._admin(
            credential, "GET", f"/organizations/{organization.organization_id}"
        )
        if admitted:
            me = self.world.people[credential.person]
            assert reply.status == (200 if me.operator or me.name in organization.roles else 404), note
        await self._done(note, accounts=False)

    async def _list(self, credential: Credential, how: int) -> None:
        other = list(self.world.people.values())[how % len(self.world.people)].user_id
        organization = self._organization(how).organization_id
        routes: list[tuple[str, dict[str, str]]] = [
            ("/users", {}), ("/organizations", {}), ("/keys", {}), ("/keys", {"user": other}),
            ("/graphs", {}), ("/graphs", {"user": other}), ("/audit", {}), ("/audit", {"user": other}),
            ("/audit", {"org": organization}), (f"/organizations/{organization}/invitations", {}),
            ("/grants", {}), ("/grants", {"user": other}), (f"/users/{other}/identities", {}),
            ("/keys", {"user": "nobody"}), ("/grants", {"user": "nobody"}), ("/users/nobody/identities", {}),
        ]  # fmt: skip
        path, query = routes[how % len(routes)]
        about = self._organization(how) if "org" in query else None
        reply, note, admitted = await self._admin(credential, "GET", path, query=query, log_of=about)
        me = self.world.people[credential.person]
        asked = path.split("/")[2] if path.endswith("/identities") else query.get("user")
        if admitted and not me.operator and path != "/audit" and asked not in (None, me.user_id):
            # Whether or not there is somebody of this name.
            assert reply.status == 403, note
        if admitted and path == "/audit" and not me.operator:
            decides = about is not None and self.world.decides(me.name, about.name)
            assert reply.status == (200 if decides or query.get("user") == me.user_id else 403), note
        await self._done(note, accounts=False)

    async def _freeze(self, credential: Credential, how: int) -> None:
        graph = list(self.world.graphs.values())[how % len(self.world.graphs)]
        frozen = how % 4 == 0
        reply, note, admitted = await self._admin(
            credential, "POST", f"/graphs/{graph.graph_id}", body={"frozen": frozen}
        )
        allowed = admitted and self._decides_about(credential, graph)
        if admitted:
            assert reply.status == (200 if allowed else 404), note
        if allowed:
            graph.frozen = frozen
        await self._done(note, accounts=allowed)

    async def _remove_graph(self, credential: Credential, how: int) -> None:
        graph = list(self.world.graphs.values())[how % len(self.world.graphs)]
        reply, note, admitted = await self._admin(credential, "DELETE", f"/graphs/{graph.graph_id}")
        allowed = admitted and self._decides_about(credential, graph)
        removable = allowed and graph.user is not None and not graph.is_default
        if admitted:
            assert reply.status == (200 if removable else 409 if allowed else 404), note
        if removable:
            del self.world.graphs[graph.label]
        await self._done(note, accounts=removable)

    async def _write_mode(self, credential: Credential, how: int) -> None:
        organization = self._organization(how) if how % 4 else None
        body = {"org": "none" if organization is None else organization.organization_id}
        reply, note, admitted = await self._admin(credential, "POST", "/write-mode", body=body)
        me = self.world.people[credential.person]
        allowed = admitted
        if admitted and organization is not None:
            role = organization.roles.get(me.name)
            known = me.operator or role is not None
            assert reply.status == (200 if role in WRITERS else 403 if known else 404), note
            allowed = role in WRITERS
        elif admitted:
            assert reply.status == 200, note
        if allowed:
            me.writes_to = None if organization is None else organization.name
        await self._done(note, accounts=allowed)

    async def _put_member(self, credential: Credential, how: int) -> None:
        organization = self._organization(how)
        person = list(self.world.people.values())[how // 2 % len(self.world.people)]
        role = (OWNER, ADMIN, MEMBER)[how // 8 % 3]
        present = organization.roles.get(person.name)
        path = f"/organizations/{organization.organization_id}/members"
        if how % 3 == 0:
            path += f"/{person.user_id}"
        reply, note, admitted = await self._admin(
            credential, "POST", path, body={"user": person.user_id, "role": role}
        )
        me = self.world.people[credential.person]
        allowed = False
        if admitted:
            expected = self._membership_status(me, organization, present, role, is_new=how % 3 != 0)
            if expected == 200 and present == OWNER and role != OWNER and len(organization.owners()) == 1:
                expected = 409
            allowed = expected == 200
            assert reply.status in ((200, 201) if allowed else (expected,)), (expected, note)
        if allowed:
            organization.roles[person.name] = role
            if role not in WRITERS and person.writes_to == organization.name:
                person.writes_to = None
        await self._done(note, accounts=allowed)

    async def _remove_member(self, credential: Credential, how: int) -> None:
        organization = self._organization(how)
        person = list(self.world.people.values())[how // 2 % len(self.world.people)]
        present = organization.roles.get(person.name)
        reply, note, admitted = await self._admin(
            credential, "DELETE", f"/organizations/{organization.organization_id}/members/{person.user_id}"
        )
        me = self.world.people[credential.person]
        allowed = False
        if admitted:
            if (not me.operator and me.name not in organization.roles) or present is None:
                expected = 404
            elif person is not me and not self.world.may_give(me.name, organization.name, present):
                expected = 403
            elif present == OWNER and len(organization.owners()) == 1:
                expected = 409
            else:
                expected = 200
            allowed = expected == 200
            assert reply.status == expected, (expected, note)
        if allowed:
            self.world.leave(person.name, organization.name)
        await self._done(note, accounts=allowed)

    async def _new_key(self, credential: Credential, how: int) -> None:
        person = list(self.world.people.values())[how % len(self.world.people)]
        graph = list(self.world.graphs.values())[how // 5 % len(self.world.graphs)]
        scope, admin = ("owner", "member")[how % 2], how % 7 == 0
        reply, note, admitted = await self._admin(
            credential,
            "POST",
            "/keys",
            body={"user": person.user_id, "graph": graph.graph_id, "scope": scope, "admin": admin},
        )
        me = self.world.people[credential.person]
        allowed = False
        if admitted:
            if person is not me and not me.operator:
                expected = 403
            elif not self.world.is_reached(person.name, graph):
                expected = 404
            elif (
                scope == "owner"
                and graph.organization
                and self.world.role(person.name, graph.organization) == MEMBER
            ):
                expected = 403
            else:
                expected = 201
            allowed = expected == 201
            assert reply.status == expected or (expected == 403 and reply.status == 404), (expected, note)
        if allowed:
            body = reply.body
            self.world.credentials.append(
                Credential(
                    body["key"],
                    f"new key of {person.name} at {graph.label}",
                    person.name,
                    graph.label,
                    scope == "owner",
                    admin,
                    key_id=body["key_id"],
                )
            )
        await self._done(note, accounts=allowed)

    async def _revoke_key(self, credential: Credential, how: int) -> None:
        keys = [one for one in self.world.credentials if one.key_id]
        key = keys[how % len(keys)]
        if how % 5:
            # Seldom, or nobody would have a credential left; a stranger's try costs nobody anything.
            key = next((one for one in keys if one.person != credential.person), key)
        reply, note, admitted = await self._admin(credential, "DELETE", f"/keys/{key.key_id}")
        me = self.world.people[credential.person]
        allowed = False
        if admitted:
            known = me.operator or key.person == me.name
            allowed = known and reply.status == 200
            assert reply.status in ((200, 404) if known else (404,)), note
        if allowed:
            key.alive = False
        await self._done(note, accounts=allowed)

    async def _run_the_server(self, credential: Credential, how: int) -> None:
        """What only operators may do."""
        if how % 2:
            reply, note, admitted = await self._admin(credential, "POST", "/purge", body={"check": True})
        else:
            body = {"name": f"newcomer {how}", "password": "short"}
            reply, note, admitted = await self._admin(credential, "POST", "/users", body=body)
        if admitted:
            # A password that is too short is found out after it was asked who wants to add somebody.
            done = 200 if how % 2 else 422
            assert reply.status == (done if self.world.people[credential.person].operator else 403), note
        await self._done(note, accounts=False)

    def _organization(self, how: int) -> Organization:
        return list(self.world.organizations.values())[how % len(self.world.organizations)]

    def _decides_about(self, credential: Credential, graph: Graph) -> bool:
        me = self.world.people[credential.person]
        if me.operator or graph.user == me.name:
            return True
        return graph.organization is not None and self.world.decides(me.name, graph.organization)

    def _membership_status(
        self, me: Person, organization: Organization, present: str | None, role: str, *, is_new: bool
    ) -> int:
        if not me.operator and me.name not in organization.roles:
            return 404
        if not self.world.decides(me.name, organization.name):
            return 403
        if is_new and not me.operator:
            return 403  # they are invited
        if is_new and present is not None:
            return 409
        if not is_new and present is None:
            return 404
        gives = self.world.may_give(me.name, organization.name, role)
        takes = present is None or self.world.may_give(me.name, organization.name, present)
        return 200 if gives and takes else 403

    # What must hold -------------------------------------------------------------------------------

    def _check_text(
        self, reply: Reply, readable: set[str], note: str, arguments: Arguments, header: str | None
    ) -> None:
        """No mark of a graph that may not be read, and no id that the caller has not sent."""
        assert DENIED not in reply.text or DENIED in json.dumps(arguments), note
        if reply.status >= 400:
            # What was sent may be named in a refusal; nothing else is.
            readable = set()
        for graph in self.world.graphs.values():
            if graph.label not in readable and graph.mark not in json.dumps(arguments):
                assert graph.mark not in reply.text, f"{graph.mark}: {note}"

    async def _check_rows(self, changed: set[str], talked: set[str], note: str) -> None:
        """Only the memories in `changed` have other rows than before, only `talked` other conversations."""
        after = await self.served.settled()
        ids = {graph.graph_id: graph.label for graph in self.world.graphs.values()}
        for graph_id in {*self.before.memory, *after.memory}:
            if self.before.memory.get(graph_id) != after.memory.get(graph_id):
                assert ids.get(graph_id) in changed, f"the memory {ids.get(graph_id)} changed: {note}"
        for graph_id in {*self.before.conversations, *after.conversations}:
            if self.before.conversations.get(graph_id) != after.conversations.get(graph_id):
                assert ids.get(graph_id) in talked, f"conversations of {ids.get(graph_id)} changed: {note}"
        assert self.before.accounts == after.accounts, f"the accounts changed: {note}"
        self.before = after

    def _learn(self, reply: Reply) -> None:
        """Keep ids and cursors of an answer: anybody may try them anywhere from now on."""
        if not isinstance(reply.body, dict) or reply.status >= 300:
            return
        body = reply.body
        if body.get("file_id"):
            self.file_ids.append(body["file_id"])
        if body.get("next_cursor"):
            self.cursors.append(body["next_cursor"])
        results = body.get("relationship_results") or body
        for receipt in results.get("created") or ():
            if isinstance(receipt, dict) and receipt.get("entity_id"):
                self.relationship_ids.append(receipt["entity_id"])


def _token(url: str) -> str:
    return url.partition("token=")[2]
