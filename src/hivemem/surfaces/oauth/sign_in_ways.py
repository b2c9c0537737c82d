"""Ways to sign in with a form. A new one is a class here and an entry in the list that `routes.py` makes."""

from __future__ import annotations

from typing import Protocol

from hivemem.domain.oauth import Identity
from hivemem.service.passwords import MAX_CHARACTERS, MIN_CHARACTERS
from hivemem.service.people import MAX_NAME_CHARACTERS
from hivemem.service.sign_ins import SignIns
from hivemem.surfaces.oauth.pages import Form
from hivemem.surfaces.oauth.wire import Parameters

PASSWORD_FIELDS = (
    '<label for="name">Name</label>'
    '<input id="name" name="name" type="text" autocomplete="username" autocapitalize="none" '
    'spellcheck="false" required autofocus>'
    '<label for="password">Password</label>'
    '<input id="password" name="password" type="password" autocomplete="current-password" required>'
)
NEW_ACCOUNT_FIELDS = (
    '<label for="new-name">Name</label>'
    f'<input id="new-name" name="name" type="text" autocomplete="username" maxlength="{MAX_NAME_CHARACTERS}" '
    'autocapitalize="none" spellcheck="false" required>'
    '<label for="new-password">Password</label>'
    '<input id="new-password" name="password" type="password" autocomplete="new-password" '
    f'minlength="{MIN_CHARACTERS}" maxlength="{MAX_CHARACTERS}" required '
    'aria-describedby="new-password-help">'
    f'<p id="new-password-help">{MIN_CHARACTERS} characters at least; four words make a good one.</p>'
)


class SignInWay(Protocol):
    """How a person shows who they are, on the page that every way shares."""

    @property
    def form(self) -> Form:
        """What the page shows."""
        ...

    async def identity(self, sent: Parameters) -> Identity:
        """Who filled in the form.

        Raises:
            Unauthorized: Nobody who is known; the message is shown on the page.
        """
        ...


class PasswordWay:
    """With name and password: the program gets what the person chooses, and ends when they say so."""

    form = Form(way="password", fields=PASSWORD_FIELDS, button="Sign in")

    def __init__(self, sign_ins: SignIns) -> None:
        self._sign_ins = sign_ins

    async def identity(self, sent: Parameters) -> Identity:
        """The user of this name; see `SignInWay.identity`."""
        return await self._sign_ins.by_password(sent.get("name") or "", sent.get("password") or "")


class ApiKeyWay:
    """With an API key of this server: the program gets what the key may do, and ends with it."""

    form = Form(
        way="api_key",
        fields=(
            '<label for="api-key">API key</label>'
            '<input id="api-key" name="api_key" type="password" autocomplete="off" spellcheck="false" '
            'required aria-describedby="api-key-help">'
            '<p id="api-key-help">Or paste an API key of this server, as made by <code>hivemem key create'
            "</code>. The program gets access to its memory, and never more than the key may do.</p>"
        ),
        button="Continue with the key",
    )

    def __init__(self, sign_ins: SignIns) -> None:
        self._sign_ins = sign_ins

    async def identity(self, sent: Parameters) -> Identity:
        """The owner of the key; see `SignInWay.identity`."""
        return await self._sign_ins.by_key((sent.get("api_key") or "").strip())
