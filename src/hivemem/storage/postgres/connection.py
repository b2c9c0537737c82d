"""Where the database is, how connections to it are set up, and PostgreSQL's errors as ours."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow
from psycopg.types.numeric import Int8BinaryDumper

from hivemem.errors import Corruption, HivememError, InvalidInput, NotFound, Unavailable

Connection: TypeAlias = "psycopg.AsyncConnection[TupleRow]"

OLDEST_SERVER = 140_000
"""PostgreSQL 14, as the server numbers it."""

_DEFAULTS: Mapping[str, Any] = {
    "application_name": "hivemem",
    "connect_timeout": 5,
    # A peer that vanished without a word is noticed within a minute.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}

# States of the connection, not of the statement: class 08, and the server or an operator ended it.
_ENDED = frozenset(("57P01", "57P02", "57P03", "57P05", "25P03"))
_BROKEN_BYTES = frozenset(("XX001", "XX002"))
_NOT_STORABLE = frozenset(("22021", "22P05", "22003", "54000"))
_NO_SCHEMA = frozenset(("3F000", "42P01", "42703"))
_GRAPH_DELETED = "ZG001"
"""What the function hold_graph of the schema raises."""
_COLLISIONS = frozenset(("40001", "40P01"))
_FORGOTTEN = "26000"


class _Integer(Int8BinaryDumper):
    """Every integer as BIGINT, so that a statement has one plan whatever the size of its arguments."""

    def dump(self, obj: int) -> bytes | bytearray | memoryview | None:
        if not -(2**63) <= obj < 2**63:
            raise OverflowError
        return super().dump(obj)


@dataclass(frozen=True, slots=True)
class Address:
    """The parts of a database URL. It prints as host, port and name, never with a credential."""

    parameters: Mapping[str, Any] = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> Address:
        """The address that a `postgresql://` URL names.

        Raises:
            InvalidInput: It is no such URL. The message does not quote it, since it may hold a password.
        """
        if not url.startswith(("postgresql://", "postgres://")):
            raise InvalidInput("the database URL does not begin with postgresql://; see `database_url`.")
        try:
            parameters = conninfo_to_dict(url)
        except psycopg.Error:
            parameters = {"host": "@"}
        if "@" in f"{parameters.get('host', '')}{parameters.get('dbname', '')}":
            # Part of a password: what names such a host or database would tell it.
            raise InvalidInput(
                "the database URL cannot be read; its form is postgresql://USER:PASSWORD@HOST:PORT/DATABASE, "
                "with %40 for @, %3A for : and %2F for / inside user and password."
            )
        return cls({**_DEFAULTS, **parameters})

    def __str__(self) -> str:
        host = self.parameters.get("host") or self.parameters.get("hostaddr") or "localhost"
        port = self.parameters.get("port") or 5432
        name = self.parameters.get("dbname") or self.parameters.get("user") or "the default database"
        return f"{name} at {host}:{port}"

    def without_secrets(self, text: str) -> str:
        """`text` with the password, should it be in there, as stars."""
        password = str(self.parameters.get("password") or "")
        return text.replace(password, "***") if password else text


def prepare_connection(connection: Connection) -> None:
    """Set what every connection of ours needs before its first statement."""
    connection.adapters.register_dumper(int, _Integer)


async def connect(address: Address) -> Connection:
    """A connection in autocommit mode: transactions begin and end where the code says so.

    Raises:
        Unavailable: The server cannot be reached, or does not let us in.
    """
    with our_errors(address):
        parameters: dict[str, Any] = {**address.parameters}
        connection = await psycopg.AsyncConnection.connect(autocommit=True, **parameters)
        prepare_connection(connection)
        return connection


@contextlib.contextmanager
def our_errors(address: Address) -> Generator[None, None, None]:
    """Raise PostgreSQL's errors as hivemem's.

    Raises:
        Unavailable: Unreachable, overloaded, locked for too long, out of disk, or without the right.
        Corruption: Damaged, or without our tables.
        NotFound: A write to a graph that was deleted.
        InvalidInput: A text argument holds NUL or a lone surrogate, or an integer needs more than 64 bits.
    """
    try:
        yield
    except psycopg.Error as error:
        ours = translated(error, address)
        if ours is None:
            raise
        # Not the driver's error as the cause: its text is repeated in ours as far as it is safe.
        raise ours from None
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{error.object!r} holds a lone surrogate; send well-formed text.") from error
    except OverflowError as error:
        raise InvalidInput("an integer is too large to be stored; send one of at most 64 bits.") from error


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone, so that the same can be tried on another one."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    if isinstance(error, errors.PipelineAborted):
        return False
    state = error.sqlstate
    return state is None or state.startswith("08") or state in _ENDED


def is_collision(error: BaseException) -> bool:
    """Whether a transaction got into another one's way, was rolled back whole, and can be repeated."""
    return isinstance(error, psycopg.Error) and error.sqlstate in _COLLISIONS


def is_forgotten(error: BaseException) -> bool:
    """Whether the server does not know a prepared statement that the driver counts on.

    The driver takes a statement for prepared as soon as it has sent it in a pipeline; the server skips it
    when another one before it fails. A pooler that gives each transaction another connection does it too.
    """
    return isinstance(error, psycopg.Error) and error.sqlstate == _FORGOTTEN


def translated(error: psycopg.Error, address: Address) -> HivememError | None:
    """The error of ours that says what `error` says; None when it is a mistake in our code."""
    state = error.sqlstate
    # One line: libpq writes its advice into a second one.
    said = " ".join(address.without_secrets(error.diag.message_primary or str(error)).split())
    if isinstance(error, psycopg.DataError) and (state is None or state in _NOT_STORABLE):
        return InvalidInput(f"a value cannot be stored: {said}; send well-formed text without NUL.")
    if state in _NOT_STORABLE:
        return InvalidInput(f"a value cannot be stored: {said}; send a smaller one.")
    if state == _GRAPH_DELETED:
        return NotFound(said, code="graph_deleted")
    if state == "57014":
        return Unavailable(
            f"a statement in the database {address} was ended by its time limit; try again, or raise "
            "database_statement_seconds."
        )
    if state == "55P03":
        return Unavailable(
            f"the database {address} is busy with another write for longer than busy_timeout_seconds; "
            "try again."
        )
    if state in _COLLISIONS:
        return Unavailable(
            f"a write to the database {address} collided with others again and again; try again."
        )
    if state == _FORGOTTEN:
        return Unavailable(
            f"the database {address} forgets prepared statements again and again; a pooler between has to "
            "keep a connection for each session (pool_mode = session in PgBouncer)."
        )
    if state in _BROKEN_BYTES:
        return Corruption(f"the database {address} is damaged ({said}); restore a backup.")
    if state in _NO_SCHEMA:
        return Corruption(
            f"the database {address} lacks a part of the schema ({said}); run `hivemem db migrate`, or "
            "restore a backup."
        )
    if isinstance(error, psycopg.IntegrityError):
        return None
    if state is not None and state.startswith("42") and state != "42501":
        return None
    if state == "42501":
        return Unavailable(
            f"the database {address} cannot be used: {said}; make the role that database_url names the owner "
            "of its schema."
        )
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return Unavailable(
            f"the database {address} cannot be used now: {said}; check that it runs and takes another "
            "connection, and the host, user, password and database in database_url."
        )
    return None
