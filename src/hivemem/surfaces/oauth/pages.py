"""The pages of a sign-in: plain HTML that works without scripts and with every screen reader.

Nothing but the page's own form and its one style sheet is allowed to do anything (Content-Security-Policy).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from urllib.parse import urlsplit

from starlette.responses import HTMLResponse

from hivemem.domain.oauth import ADMIN, READ, WRITE, OAuthClient
from hivemem.domain.redirect_uris import redirect_origin

_STYLE = """
body { font: 1rem/1.5 system-ui, sans-serif; margin: 3rem auto; max-width: 30rem; padding: 0 1rem;
       color: #1b1b1f; background: #fff; }
h1 { font-size: 1.4rem; }
code { overflow-wrap: anywhere; }
label { display: block; font-weight: 600; margin: 1rem 0 .3rem; }
input { box-sizing: border-box; width: 100%; font: inherit; padding: .5rem; border: 1px solid #767680; }
button { font: inherit; padding: .5rem 1.2rem; margin: 1rem .5rem 0 0; }
[role=alert] { border-left: .3rem solid #b3261e; padding: .3rem .8rem; }
@media (prefers-color-scheme: dark) { body { color: #e6e6ea; background: #1b1b1f; } }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

_MEANINGS = {
    READ: "read everything in this memory",
    WRITE: "add, change and forget memories",
    ADMIN: "change settings of this memory",
}


def sign_in_page(
    client: OAuthClient, redirect_uri: str, request: str, forms: Sequence[tuple[str, str]], problem: str = ""
) -> HTMLResponse:
    """Ask who is there.

    Args:
        client: The program that asks.
        redirect_uri: Where the browser goes in the end.
        request: The secret that names the sign-in.
        forms: For each way to sign in its name and the HTML of its fields.
        problem: Why the last attempt failed.
    """
    alert = f'<p role="alert">{escape(problem)}</p>' if problem else ""
    ways = "".join(
        f'<form method="post" action="/oauth/sign-in">{_hidden("request", request)}{_hidden("way", name)}'
        f'{fields}<button type="submit">Continue</button></form>'
        for name, fields in forms
    )
    body = f"<h1>Sign in to this memory</h1>{_asks(client, redirect_uri)}{alert}{ways}"
    return _page("Sign in", body, ("'self'",), 403 if problem else 200)


def consent_page(
    client: OAuthClient, redirect_uri: str, request: str, consent: str, scopes: Sequence[str]
) -> HTMLResponse:
    """Ask whether a program may do what it wants to."""
    allowed = "".join(
        f"<li>{_MEANINGS[scope]} <small>(<code>{scope}</code>)</small></li>" for scope in scopes
    )
    body = (
        f"<h1>Give access to this memory?</h1>{_asks(client, redirect_uri)}"
        f"<p>If you allow it, the program can:</p><ul>{allowed}</ul>"
        "<p>It never gets your key. Its access ends when your key is revoked.</p>"
        f'<form method="post" action="/oauth/consent">{_hidden("request", request)}'
        f'{_hidden("consent", consent)}<button type="submit" name="decision" value="allow">Allow</button>'
        '<button type="submit" name="decision" value="deny">Deny</button></form>'
    )
    return _page("Give access", body, ("'self'", _form_target(redirect_uri)), 200)


def problem_page(problem: str, status: int, headers: Mapping[str, str]) -> HTMLResponse:
    """Say why nothing can be done, without a way back to a program that is not known to be the right one."""
    title = "Sign-in not possible"
    page = _page(title, f'<h1>{title}</h1><p role="alert">{escape(problem)}</p>', (), status)
    page.headers.update(headers)
    return page


def _asks(client: OAuthClient, redirect_uri: str) -> str:
    name, target = escape(client.name or client.client_id), escape(redirect_origin(redirect_uri))
    return (
        f"<p>The program <strong>{name}</strong> asks for access. It says so itself: nobody has checked its "
        f"name. Afterwards your browser goes to <code>{target}</code>.</p>"
    )


def _hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{name}" value="{escape(value)}">'


def _form_target(redirect_uri: str) -> str:
    """Where the answer to the form may redirect to, since Chromium applies `form-action` to redirects too.

    Web programs pass the browser on from their address, so that all of https is allowed for them. A policy
    cannot name an IPv6 address.
    """
    parts = urlsplit(redirect_uri)
    if parts.scheme == "http" and "[" not in parts.netloc:
        return f"http://{parts.netloc}"
    return f"{parts.scheme}:"


def _page(title: str, body: str, targets: Sequence[str], status: int) -> HTMLResponse:
    allowed = " ".join(targets) or "'none'"
    policy = (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; frame-ancestors 'none'; "
        f"form-action {allowed}"
    )
    html = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} - hivemem</title>"
        f"<style>{_STYLE}</style></head><body><main>{body}</main></body></html>"
    )
    headers = {
        "Content-Security-Policy": policy,
        "X-Frame-Options": "DENY",
        # Not `no-referrer`: browsers would then send `Origin: null` with the form, which the edge refuses.
        "Referrer-Policy": "same-origin",
    }
    return HTMLResponse(html, status, headers)
