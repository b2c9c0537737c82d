"""The administration: people, graphs, organizations, keys and the audit log.

One table, like that of the memory: REST routes below `/api/v1/admin` and the verbs `hivemem user`, `graph`,
`org`, `key`, `grant`, `audit` and `purge` are made from it. It is not offered to agents.
"""

from __future__ import annotations

from hivemem.surfaces.administration.audit import AUDIT_OPERATIONS
from hivemem.surfaces.administration.grants import GRANT_OPERATIONS
from hivemem.surfaces.administration.graphs import GRAPH_OPERATIONS
from hivemem.surfaces.administration.identities import IDENTITY_OPERATIONS
from hivemem.surfaces.administration.keys import KEY_OPERATIONS
from hivemem.surfaces.administration.organizations import ORGANIZATION_OPERATIONS
from hivemem.surfaces.administration.purge import PURGE_OPERATIONS
from hivemem.surfaces.administration.users import USER_OPERATIONS
from hivemem.surfaces.operations.operation import AnyOperation

ADMINISTRATION: tuple[AnyOperation, ...] = (
    *USER_OPERATIONS,
    *IDENTITY_OPERATIONS,
    *GRAPH_OPERATIONS,
    *ORGANIZATION_OPERATIONS,
    *KEY_OPERATIONS,
    *GRANT_OPERATIONS,
    *AUDIT_OPERATIONS,
    *PURGE_OPERATIONS,
)
