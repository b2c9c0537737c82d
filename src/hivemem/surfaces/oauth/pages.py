"""The pages of a sign-in: plain HTML that works without scripts and with every screen reader.

Nothing but the page's own form and its one style sheet is allowed to do anything (Content-Security-Policy).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import urlsplit

from starlette.responses import HTMLResponse

from hivemem.domain.accounts import GraphKind
from hivemem.domain.oauth import ADMIN, READ, WRITE, OAuthClient
from hivemem.domain.redirect_uris import redirect_origin
from hivemem.service.sign_ins import Memory

_STYLE = """
body { font: 1rem/1.5 system-ui, sans-serif; margin: 3rem auto; max-width: 30rem; padding: 0 1rem;
       color: #1b1b1f; background: #fff; }
h1 { font-size: 1.4rem; }
code { overflow-wrap: anywhere; }
label { display: block; font-weight: 600; margin: 1rem 0 .3rem; }
input, select { box-sizing: border-box; width: 100%; font: inherit; padding: .5rem;
                border: 1px solid #767680; }
button { font: inherit; padding: .5rem 1.2rem; margin: 1rem .5rem 0 0; }
form + form, .way { border-top: 1px solid #c8c8ce; margin-top: 1.5rem; padding-top: .5rem; }
.way a { display: inline-block; color: inherit; border: 1px solid #767680; padding: .5rem 1.2rem; }
strong.warning { color: #b3261e; }
[role=alert] { border-left: .3rem solid #b3261e; padding: .3rem .8rem; }
@media (prefers-color-scheme: dark) { body { color: #e6e6ea; background: #1b1b1f; }
  strong.warning { color: #ffb4ab; } }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

_MEANINGS = {
    READ: "read everything in this memory",
    WRITE: "add, change and forget memories",
    ADMIN: '<strong class="warning">administer in your name</strong>: make and end keys, and change or '
    "remove accounts, memories and organizations as far as you may. Few programs need this.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A way to sign in as a page shows it: fields that are sent, or a link to another place.

    Attributes:
        way: What the form sends to name the way.
        fields: HTML of its fields; empty for a link.
        button: What its button says.
        link: Where a way leads that has no form here.
    """

    way: str
    fields: str = ""
    button: str = "Continue"
    link: str = ""

    def html(self, action: str, hidden_fields: str) -> str:
        """The form, sent to `action`."""
        if self.link:
            return f'<p class="way"><a href="{escape(self.link)}">{escape(self.button)}</a></p>'
        return (
            f'<form method="post" action="{action}">{hidden_fields}{hidden("way", self.way)}{self.fields}'
            f'<button type="submit">{escape(self.button)}</button></form>'
        )


def sign_in_page(
    client: OAuthClient, redirect_uri: str, request: str, forms: Sequence[Form], problem: str = ""
) -> HTMLResponse:
    """Ask who is there.

    Args:
        client: The program that asks.
        redirect_uri: Where the browser goes in the end.
        request: The secret that names the sign-in.
        forms: The ways to sign in.
        problem: Why the last attempt failed.
    """
    ways = "".join(form.html("/oauth/sign-in", hidden("request", request)) for form in forms)
    body = f"<h1>Sign in to this memory</h1>{_asks(client, redirect_uri)}{alert(problem)}{ways}"
    return plain_page("Sign in", body, ("'self'",), 403 if problem else 200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the consent page asks.

    Attributes:
        scopes: What the program can do, if it is allowed to.
        who: Name of who signed in; empty for an API key.
        memories: What they can choose from; nothing for an API key, which is for one memory.
    """

    scopes: Sequence[str]
    who: str = ""
    memories: Sequence[Memory] = ()


def consent_page(
    client: OAuthClient, redirect_uri: str, request: str, consent: str, question: Question
) -> HTMLResponse:
    """Ask whether a program may do what it wants to."""
    allowed = "".join(
        f"<li>{_MEANINGS[scope]} <small>(<code>{scope}</code>)</small></li>" for scope in question.scopes
    )
    if question.who:
        end = (
            "It never gets your password. You end its access with <code>hivemem grant revoke</code>, and "
            "with a new password."
        )
        signed_in = f"<p>You are signed in as <strong>{escape(question.who)}</strong>.</p>"
    else:
        end, signed_in = "It never gets your key. Its access ends when your key is revoked.", ""
    body = (
        f"<h1>Give access to this memory?</h1>{signed_in}{_asks(client, redirect_uri)}"
        f'<form method="post" action="/oauth/consent">{hidden("request", request)}'
        f"{hidden('consent', consent)}{_choice(question.memories)}"
        f"<p>If you allow it, the program can:</p><ul>{allowed}</ul><p>{end}</p>"
        '<button type="submit" name="decision" value="allow">Allow</button>'
        '<button type="submit" name="decision" value="deny">Deny</button></form>'
    )
    return plain_page("Give access", body, ("'self'", _form_target(redirect_uri)), 200)


def _choice(memories: Sequence[Memory]) -> str:
    if len(memories) < 2:
        return ""
    kinds = {GraphKind.PERSONAL: "yours", GraphKind.ORGANIZATION: "organization"}
    options = "".join(
        f'<option value="{escape(one.graph_id)}">{escape(one.name)} ({kinds[one.kind]})</option>'
        for one in memories
    )
    return (
        '<label for="graph">Memory that the program works with</label>'
        f'<select id="graph" name="graph" aria-describedby="graph-help">{options}</select>'
        '<p id="graph-help">A program that is made for several memories can name another one of yours; it '
        "never reaches one that you do not reach yourself.</p>"
    )


def problem_page(problem: str, status: int, headers: Mapping[str, str]) -> HTMLResponse:
    """Say why nothing can be done, without a way back to a program that is not known to be the right one."""
    title = "Sign-in not possible"
    page = plain_page(title, f"<h1>{title}</h1>{alert(problem)}", (), status)
    page.headers.update(headers)
    return page


def _asks(client: OAuthClient, redirect_uri: str) -> str:
    name, target = escape(client.name or client.client_id), escape(redirect_origin(redirect_uri))
    return (
        f"<p>The program <strong>{name}</strong> asks for access. It says so itself: nobody has checked its "
        f"name. Afterwards your browser goes to <code>{target}</code>.</p>"
    )


def alert(problem: str) -> str:
    """Why the last attempt failed, as HTML; nothing when there was none."""
    return f'<p role="alert">{escape(problem)}</p>' if problem else ""


def hidden(name: str, value: str) -> str:
    """A field that people do not see."""
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


def plain_page(title: str, body: str, targets: Sequence[str] = (), status: int = 200) -> HTMLResponse:
    """A page around `body`, which is HTML. `targets`: where its forms may lead, as sources of a policy."""
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
