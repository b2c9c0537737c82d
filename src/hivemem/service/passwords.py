"""Passwords: kept as argon2id, checked beside the event loop."""

from __future__ import annotations

import asyncio
import hashlib
import unicodedata
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from hivemem.domain.accounts import User
from hivemem.errors import InvalidInput

MIN_CHARACTERS = 10
MAX_CHARACTERS = 256

# Each check takes 64 MiB for a moment; more at a time would be a way to use up the memory.
_AT_ONCE = 2


class Passwords:
    """Hashes and checks passwords, a few at a time.

    The parameters are those of RFC 9106 for little memory: 64 MiB, three passes, four lanes.
    """

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def hash(self, password: str) -> str:
        """The argon2id hash of a new password, in PHC form.

        Raises:
            InvalidInput: Shorter than 10 or longer than 256 characters.
        """
        normal = _normal(password)
        if not MIN_CHARACTERS <= len(normal) <= MAX_CHARACTERS:
            raise InvalidInput(
                f"/password has {len(normal)} characters; choose {MIN_CHARACTERS} to {MAX_CHARACTERS}, such "
                "as four words."
            )
        async with self._turns:
            return await asyncio.to_thread(_hasher().hash, normal)

    async def matches(self, user: User | None, password: str) -> bool:
        """Whether `password` is the user's. It takes as long when there is no user, or no password."""
        kept = user.password_hash if user is not None else None
        async with self._turns:
            right = await asyncio.to_thread(_verified, kept or _nobodys(), _normal(password)[:MAX_CHARACTERS])
        return right and kept is not None


def mark_of(user: User) -> str | None:
    """What changes with every new password of a user, and tells nothing about it; None without one."""
    return None if user.password_hash is None else hashlib.sha256(user.password_hash.encode()).hexdigest()


def _normal(password: str) -> str:
    """One form for what keyboards send in several (RFC 8265)."""
    return unicodedata.normalize("NFC", password)


def _verified(hash: str, password: str) -> bool:
    try:
        return _hasher().verify(hash, password)
    except (VerificationError, InvalidHashError):
        return False


@cache
def _hasher() -> PasswordHasher:
    return PasswordHasher()


@cache
def _nobodys() -> str:
    return _hasher().hash("a password that nobody has")
