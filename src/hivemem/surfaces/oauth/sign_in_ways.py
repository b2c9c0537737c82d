"""Ways to sign in. A new one is a class here and an entry in the list that `routes.py` makes."""

from __future__ import annotations

from typing import Protocol

from hivemem.domain.oauth import Identity
from hivemem.service.access import Access
from hivemem.surfaces.oauth.wire import Parameters


class SignInWay(Protocol):
    """How a person shows who they are, on the page that every way shares."""

    @property
    def name(self) -> str:
        """What the form sends to name this way."""
        ...

    @property
    def fields(self) -> str:
        """The HTML of the form's fields."""
        ...

    async def identity(self, sent: Parameters) -> Identity:
        """Who filled in the form.

        Raises:
            Unauthorized: Nobody who is known; the message is shown on the page.
        """
        ...


class ApiKeyWay:
    """With an API key of this server: the program gets what the key may do, and ends with it."""

    name = "api_key"
    fields = (
        '<label for="api-key">API key</label>'
        '<input id="api-key" name="api_key" type="password" autocomplete="off" spellcheck="false" required '
        'autofocus aria-describedby="api-key-help">'
        '<p id="api-key-help">Paste an API key of this server, as made by <code>hivemem key create</code>. '
        "The program gets access to its memory, and never more than the key may do.</p>"
    )

    def __init__(self, access: Access) -> None:
        self._access = access

    async def identity(self, sent: Parameters) -> Identity:
        """The owner of the key; see `SignInWay.identity`."""
        key, _ = await self._access.active_key((sent.get("api_key") or "").strip())
        return Identity(
            user_id=key.user_id, graph_id=key.graph_id, scope=key.scope, admin=key.admin, key_id=key.key_id
        )
