"""Settings: one typed value, four sources, and a message for every mistake in them.

Precedence, highest first: command-line flag, environment variable `HIVEMEM_<NAME>`, the file
`<data_dir>/hivemem.toml`, default. An unknown name is an error in each of them, since a setting that is
spelled wrongly and ignored looks exactly like one that works.

A secret may stand in a file of its own instead: `HIVEMEM_<NAME>_FILE` names it. That is how container
engines and systemd hand secrets over, and neither `docker inspect` nor `/proc` shows what is in it.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from hivemem.errors import InvalidInput
from hivemem.service.limits import Limits
from hivemem.service.rate_limits import Rates, rates

ENVIRONMENT_PREFIX = "HIVEMEM_"
SECRET_FILE_SUFFIX = "_FILE"
FILE_NAME = "hivemem.toml"
DATABASE_FILE = "hivemem.sqlite3"

_NOT_SETTINGS = frozenset(("HIVEMEM_SHARED_DIR", "HIVEMEM_TEST_DATABASE_URL"))
"""Variables with our prefix that belong to the test suite."""

_MAX_SECRET_BYTES = 16 * 1024

MIB = 1024 * 1024

_MODEL_FORMS = {
    "embedder": re.compile(r"bundled|hashing(:[1-9]\d{0,3})?|(directory|huggingface):.+|openai:.+#.+"),
    "reranker": re.compile(r"bundled|none|(directory|tei):.+|(cohere|jina):.+#.+"),
}


def default_data_dir() -> Path:
    """The folder for user data that the platform suggests."""
    # Imported here because most commands name the folder, and `--version` needs none.
    from platformdirs import user_data_path

    return user_data_path("hivemem", appauthor=False)


def _setting(
    default: Any,
    summary: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] | None = None,
    secret: bool = False,
) -> Any:
    metadata: dict[str, object] = {
        "summary": summary,
        "minimum": minimum,
        "maximum": maximum,
        "choices": choices,
        "secret": secret,
    }
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every adjustable value. Units are part of the names; ranges are inclusive.

    Raises:
        InvalidInput: A value is outside its range.
    """

    data_dir: Path = _setting(  # noqa: RUF009 - returns a field
        default_data_dir,
        "Folder of the database, the settings file and the server lock; made with mode 0700.",
    )
    host: str = _setting(
        "127.0.0.1",
        "Address that `hivemem serve` binds. `0.0.0.0` opens it to the network: set allowed_hosts.",
    )
    port: int = _setting(8477, "TCP port of `hivemem serve`; 0 takes a free one.", minimum=0, maximum=65_535)
    allowed_hosts: tuple[str, ...] = _setting(
        (),
        "Further host names that requests may carry in `Host` and `Origin`, with or without a port, such as "
        "the name behind a reverse proxy. `*` switches the protection against DNS rebinding off.",
    )
    public_url: str = _setting(
        "",
        "Address under which clients reach the server, such as `https://memory.example.org`, when it is "
        "behind a proxy; OAuth tells it to them. Empty: the address that each request names.",
    )
    trusted_proxies: tuple[str, ...] = _setting(
        (),
        "Addresses or networks (`10.0.0.0/8`) of the reverse proxies whose `X-Forwarded-For` is believed. "
        "Without them all who come through a proxy share its address, and the limits of one address.",
    )
    cors_origins: tuple[str, ...] = _setting(
        (),
        "Origins, such as `https://app.example.org`, whose pages may call REST and MCP from a browser. Each "
        "is named; there is no `*`.",
    )
    body_timeout_seconds: float = _setting(
        30.0,
        "How long a request's body may take to arrive, and a second more for each 64 KiB; also how long a "
        "caller may take for a piece of its answer.",
        minimum=0.1,
        maximum=3_600.0,
    )
    max_header_bytes: int = _setting(
        32 * 1024,
        "Largest head of a request: its address and headers; larger ones get 431.",
        minimum=4 * 1024,
        maximum=MIB,
    )
    max_concurrent_requests: int = _setting(
        512,
        "Requests that may be under way at a time; more get 503 with Retry-After. Each may hold a body.",
        minimum=1,
        maximum=100_000,
    )
    rate_limit_read_per_minute: int = _setting(
        0, "Reads of one user in a minute, over REST and MCP; 0: no limit.", minimum=0, maximum=1_000_000
    )
    rate_limit_write_per_minute: int = _setting(
        0, "Writes of one user in a minute; 0: no limit.", minimum=0, maximum=1_000_000
    )
    rate_limit_ingest_per_minute: int = _setting(
        0,
        "Texts and files of one user to be taken in, and exports to be made, in a minute; 0: no limit.",
        minimum=0,
        maximum=1_000_000,
    )
    rate_limit_sign_in_per_minute: int = _setting(
        10,
        "Attempts to sign in from one network address in a minute; 0: no limit.",
        minimum=0,
        maximum=1_000_000,
    )
    oauth_registrations_per_hour: int = _setting(
        60,
        "Programs that may register from one network address in an hour, without a credential, to ask "
        "for access with OAuth.",
        minimum=1,
        maximum=100_000,
    )
    oauth_redirect_schemes: tuple[str, ...] = _setting(
        ("cursor", "vscode", "vscode-insiders", "windsurf"),
        "Private URI schemes that a sign-in may return to, besides https, loopback addresses and schemes "
        "in reverse-domain form.",
    )
    oauth_client_documents: str = _setting(
        "off",
        "Whether programs may name themselves by the https address of a document, which the server then "
        "fetches from the internet.",
        choices=("on", "off"),
    )
    accounts_by_invitation: str = _setting(
        "on",
        "Whether somebody without an account can make one with an invitation to an organization.",
        choices=("on", "off"),
    )
    oidc_issuer: str = _setting(
        "",
        "OpenID Connect provider that people can sign in with, by its issuer, such as "
        "`https://login.example.org/realms/all`; the extra `oidc` must be installed. Empty: none.",
    )
    oidc_client_id: str = _setting("", "Id of this server at the provider.")
    oidc_client_secret: str = _setting(
        "", "Secret of this server at the provider; empty: it is a public client there.", secret=True
    )
    oidc_name: str = _setting("single sign-on", "What the button says: `Continue with` and this.")
    oidc_accounts: str = _setting(
        "existing",
        "Who may sign in with the provider: people whose account here is linked to it (`existing`), or "
        "everybody there, with a new account the first time (`create`).",
        choices=("existing", "create"),
    )
    oidc_allowed_domains: tuple[str, ...] = _setting(
        (),
        "Domains of verified e-mail addresses that may sign in with the provider. Empty: all.",
    )
    oidc_required_claim: str = _setting(
        "",
        "`NAME=VALUE`: a claim that the provider must make of who signs in, such as `groups=memory`; lists "
        "must hold the value. Empty: none.",
    )
    log_level: str = _setting(
        "info",
        "Least severe log lines to write to standard error.",
        choices=("debug", "info", "warning", "error"),
    )
    log_format: str = _setting(
        "text",
        "Form of log lines: `text` with `name=value` pairs, or `json` with an object a line.",
        choices=("text", "json"),
    )
    access_log: str = _setting(
        "off",
        "Whether each HTTP request gets a log line: method, route, status, milliseconds, request id.",
        choices=("on", "off"),
    )
    metrics: str = _setting(
        "local",
        "Who may read `/metrics`: `local` programs on this machine and credentials of who runs the server, "
        "`token` these credentials alone, `open` everybody, `off` nobody.",
        choices=("off", "local", "token", "open"),
    )
    telemetry: str = _setting(
        "off",
        "Whether traces go to the OpenTelemetry collector that the standard variables "
        "`OTEL_EXPORTER_OTLP_...` name. While it is off, these variables do nothing.",
        choices=("on", "off"),
    )
    busy_timeout_seconds: float = _setting(
        10.0,
        "How long a write waits for another process's write before it answers 503. With PostgreSQL, how long "
        "any call waits for a connection, a lock, or the server's return.",
        minimum=0.0,
        maximum=300.0,
    )
    database_url: str = _setting(
        "",
        "PostgreSQL database instead of the file in the data folder: "
        "`postgresql://USER:PASSWORD@HOST:PORT/DATABASE`. Rather in the environment than on the command "
        "line, which others can read.",
        secret=True,
    )
    database_connections: int = _setting(
        10, "Most connections of a process to PostgreSQL.", minimum=1, maximum=1_000
    )
    database_statement_seconds: float = _setting(
        30.0, "How long PostgreSQL may work on one statement.", minimum=0.1, maximum=3_600.0
    )
    database_migrations: str = _setting(
        "automatic",
        "Whether an outdated PostgreSQL schema is brought up to date when it is opened, or refused until "
        "`hivemem db migrate` has run.",
        choices=("automatic", "manual"),
    )

    max_body_bytes: int = _setting(
        8 * MIB, "Largest HTTP request body; larger ones get 413.", minimum=1024, maximum=1024 * MIB
    )
    max_answer_bytes: int = _setting(
        24_000,
        "Size that an answer to an agent is shortened to, as UTF-8 JSON; MCP sends it twice. Less saves "
        "tokens, more saves follow-up calls.",
        minimum=4_000,
        maximum=4 * MIB,
    )
    max_description_characters: int = _setting(
        2_000_000, "Longest description of a node.", minimum=1_000, maximum=50_000_000
    )
    max_search_text_characters: int = _setting(
        200_000, "Longest search_text of a node.", minimum=1_000, maximum=50_000_000
    )
    max_data_characters: int = _setting(
        200_000, "Largest data object of a node, as JSON.", minimum=1_000, maximum=50_000_000
    )
    max_query_characters: int = _setting(100_000, "Longest recall query.", minimum=100, maximum=1_000_000)
    max_relationships_per_call: int = _setting(
        500, "Most relationships in one store call.", minimum=1, maximum=10_000
    )
    max_keys_per_call: int = _setting(100, "Most keys in one hm_get_nodes call.", minimum=1, maximum=10_000)
    max_assets: int = _setting(100, "Most assets of one node.", minimum=0, maximum=10_000)
    max_ingest_characters: int = _setting(
        100_000,
        "Most characters of a text that one call takes apart into memories.",
        minimum=1,
        maximum=10_000_000,
    )
    max_graphs_per_user: int = _setting(
        100, "Most memories of one person, those of organizations not counted.", minimum=1, maximum=100_000
    )
    max_keys_per_user: int = _setting(
        1_000, "Most API keys of one person that are good.", minimum=1, maximum=100_000
    )
    max_organizations_per_user: int = _setting(
        100, "Most organizations that one person owns.", minimum=1, maximum=100_000
    )
    max_open_invitations: int = _setting(
        1_000, "Most open invitations of one organization.", minimum=1, maximum=100_000
    )
    max_file_bytes: int = _setting(25 * MIB, "Largest uploaded file.", minimum=1024, maximum=1024 * MIB)
    file_processes: int = _setting(
        2,
        "Uploaded files that are read at the same time, each in a process of its own.",
        minimum=1,
        maximum=64,
    )
    forgotten_file_days: int = _setting(
        30,
        "How long the file of a forgotten node is kept, so that it can be restored with the node.",
        minimum=0,
        maximum=36_500,
    )
    export_retention_hours: float = _setting(
        24.0,
        "How long the document of an export can be downloaded.",
        minimum=0.1,
        maximum=720.0,
    )
    max_import_batch: int = _setting(
        256,
        "Nodes that `hivemem import` stores in one transaction; more is faster and holds the write lock "
        "longer.",
        minimum=1,
        maximum=10_000,
    )

    embedder: str = _setting(
        "bundled",
        "Embedding model: `bundled`, `hashing` (no meaning, for tests), `directory:PATH`, "
        "`huggingface:REPO` or `openai:BASE_URL#MODEL`. After a change run `hivemem reembed`.",
    )
    embedder_api_key: str = _setting("", "Credential for an `openai:` embedder.", secret=True)
    reranker: str = _setting(
        "bundled",
        "Cross-encoder: `bundled`, `none`, `directory:PATH`, `tei:URL`, `cohere:URL#MODEL` or "
        "`jina:URL#MODEL`.",
    )
    reranker_api_key: str = _setting("", "Credential for a remote reranker.", secret=True)
    model_threads: int = _setting(
        0, "Threads of the local models; 0 means one for each core.", minimum=0, maximum=256
    )
    model_queue_texts: int = _setting(
        2_000,
        "Texts that may wait for the models; beyond that, calls answer 503 with Retry-After.",
        minimum=1,
        maximum=1_000_000,
    )
    rerank_depth: int = _setting(
        24,
        "Candidates that the reranker reads in one recall; more finds more and takes longer.",
        minimum=0,
        maximum=500,
    )
    rerank_context_depth: int = _setting(
        20,
        "Best of these that it reads a second time, among their neighbours; 0 switches that off.",
        minimum=0,
        maximum=500,
    )
    rerank_tokens: int = _setting(
        3_400,
        "Estimated tokens that the reranker reads in one recall, both times together: with longer texts "
        "fewer candidates are read, at least five.",
        minimum=100,
        maximum=1_000_000,
    )
    rerank_budget_seconds: float = _setting(
        1.0,
        "Time of the reranker for one recall, waiting for others not counted; what is not scored by then is "
        "ranked by word and meaning. A recall waits for others ten times as long at most.",
        minimum=0.0,
        maximum=60.0,
    )
    relevance_floor: float = _setting(
        0.048,
        "A recall whose best relevance is below this returns nothing; higher is stricter, 0 keeps all. It is "
        "meant for a graph of 1,000 nodes and adapts to the size of the graph.",
        minimum=0.0,
        maximum=1.0,
    )
    regex_max_seconds: float = _setting(
        5.0, "Time for one recall with force_regex.", minimum=0.1, maximum=60.0
    )
    projection_max_bytes: int = _setting(
        512 * MIB,
        "Memory for the search indexes of recently used graphs; the rest is rebuilt on use.",
        minimum=MIB,
        maximum=1024 * 1024 * MIB,
    )

    url: str = _setting(
        "",
        "Server that the hooks of agents, `hivemem mcp` and `hivemem doctor` talk to; empty: the one that "
        "runs on the data directory.",
    )
    api_key: str = _setting(
        "", "Credential for the server in url; empty: the variable HM_API_KEY.", secret=True
    )
    hook_timeout_seconds: float = _setting(
        2.5,
        "Time for the recall before a prompt; what is not there by then is left out.",
        minimum=0.1,
        maximum=30.0,
    )
    hook_max_results: int = _setting(5, "Most memories put before a prompt.", minimum=1, maximum=50)
    hook_max_characters: int = _setting(
        4_000,
        "Size of what is put before a prompt; agents cut at about 10,000 characters.",
        minimum=500,
        maximum=100_000,
    )
    hook_reminder_turns: int = _setting(
        5,
        "After how many turns of a session, in which nothing was stored, an agent is reminded once to store "
        "what it learnt; 0 never.",
        minimum=0,
        maximum=1_000,
    )

    def __post_init__(self) -> None:
        for spec in fields(self):
            _check_range(spec.name, getattr(self, spec.name), spec.metadata)
        _check_origin("public_url", self.public_url)
        _check_form("embedder", self.embedder)
        _check_form("reranker", self.reranker)
        _check_provider(self.oidc_issuer, self.oidc_client_id, self.oidc_required_claim)
        for origin in self.cors_origins:
            _check_cors_origin(origin)
        for network in self.trusted_proxies:
            _check_network(network)

    @property
    def database_path(self) -> Path:
        """The SQLite file in the data directory."""
        return self.data_dir / DATABASE_FILE

    @property
    def max_upload_bytes(self) -> int:
        """Largest request body that carries a file: base64 takes four bytes for three, the rest is names."""
        return max(self.max_body_bytes, self.max_file_bytes * 4 // 3 + 64 * 1024)

    @property
    def public_hosts(self) -> tuple[str, ...]:
        """The host of `public_url`, with its port if it names one; none when it is not set."""
        return (urlsplit(self.public_url).netloc,) if self.public_url else ()

    @property
    def rates(self) -> Rates:
        """The rate limits that are on."""
        return rates(
            read_per_minute=self.rate_limit_read_per_minute,
            write_per_minute=self.rate_limit_write_per_minute,
            ingest_per_minute=self.rate_limit_ingest_per_minute,
            sign_in_per_minute=self.rate_limit_sign_in_per_minute,
            registrations_per_hour=self.oauth_registrations_per_hour,
        )

    @property
    def limits(self) -> Limits:
        """The limits that the use cases enforce."""
        return Limits(
            max_description_characters=self.max_description_characters,
            max_search_text_characters=self.max_search_text_characters,
            max_data_characters=self.max_data_characters,
            max_query_characters=self.max_query_characters,
            max_relationships_per_call=self.max_relationships_per_call,
            max_keys_per_call=self.max_keys_per_call,
            max_assets=self.max_assets,
            max_ingest_characters=self.max_ingest_characters,
            max_import_batch=self.max_import_batch,
            max_graphs_per_user=self.max_graphs_per_user,
            max_keys_per_user=self.max_keys_per_user,
            max_organizations_per_user=self.max_organizations_per_user,
            max_open_invitations=self.max_open_invitations,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """Settings, and for each name where its value came from."""

    settings: Settings
    sources: Mapping[str, str]

    def rows(self) -> list[tuple[str, str | int | float | list[str], str]]:
        """(name, printable value, source) of every setting; a secret that is set prints as `***`."""
        rows: list[tuple[str, str | int | float | list[str], str]] = []
        for spec in fields(self.settings):
            value = getattr(self.settings, spec.name)
            if spec.metadata["secret"]:
                value = "***" if value else ""
            elif isinstance(value, Path):
                value = str(value)
            elif isinstance(value, tuple):
                value = [str(item) for item in cast("tuple[object, ...]", value)]
            rows.append((spec.name, value, self.sources[spec.name]))
        return rows


def load_settings(
    flags: Mapping[str, object] | None = None, environment: Mapping[str, str] | None = None
) -> LoadedSettings:
    """The effective settings from flags, environment, file and defaults.

    Args:
        flags: Setting name -> value; None values count as not given. Strings are converted.
        environment: Variables to read, the process's own by default.

    Raises:
        InvalidInput: An unknown name, a value of the wrong type or out of range, or a file that is not
            TOML. The message names the source, and for unknown names the nearest one.
    """
    environment = os.environ if environment is None else environment
    given: dict[str, tuple[object, str]] = {}
    # The folder decides which file is read, so it cannot come from that file.
    from_environment = _from_environment(environment)
    from_flags = {name: (value, "flag") for name, value in (flags or {}).items() if value is not None}
    for name in from_flags:
        _require_known(name, "flag")
    location = from_flags.get("data_dir") or from_environment.get("data_dir")
    data_dir = Path(str(location[0])).expanduser() if location else default_data_dir()
    given.update(_from_file(data_dir / FILE_NAME))
    given.update(from_environment)
    given.update(from_flags)
    values: dict[str, Any] = {name: _convert(name, value, source) for name, (value, source) in given.items()}
    values["data_dir"] = data_dir.absolute()
    sources = {
        spec.name: given[spec.name][1] if spec.name in given else "default" for spec in fields(Settings)
    }
    return LoadedSettings(settings=Settings(**values), sources=sources)


def settings_reference() -> str:
    """The reference page of all settings in Markdown; `docs/operating/settings.md` is this text."""
    lines = [
        "# Settings",
        "",
        "Every setting can be given with `--set NAME=VALUE` on the command line, as an environment variable",
        "(`HIVEMEM_` and the name in capitals), or as a line in `<data_dir>/hivemem.toml`. The command line",
        "wins over the environment, the environment over the file. `hivemem config show` prints each value",
        "and its source. An unknown name is an error. Lists have commas between items; in the file they are",
        "TOML arrays.",
        "",
        "A secret can stand in a file of its own, named by an environment variable with `_FILE` at its end,",
        "such as `HIVEMEM_DATABASE_URL_FILE`. Space around it is left out; a file that is missing or empty",
        f"is an error. Secrets are {_listed(secret_names())}.",
        "",
        "This page is written by `hivemem config reference`.",
        "",
        "| Name | Default | Range | Meaning |",
        "|---|---|---|---|",
    ]
    for spec in fields(Settings):
        default = "the platform's user data folder" if spec.name == "data_dir" else _display(spec.default)
        lines.append(f"| `{spec.name}` | {default} | {_range(spec.metadata)} | {spec.metadata['summary']} |")
    return "\n".join(lines) + "\n"


def secret_names() -> list[str]:
    """The settings that are masked wherever they are printed, and that may come from a file of their own."""
    return [spec.name for spec in fields(Settings) if spec.metadata["secret"]]


def _listed(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _display(value: object) -> str:
    if value in ("", ()):
        return "empty"
    return f"`{value}`"


def _range(metadata: Mapping[str, Any]) -> str:
    if metadata["choices"]:
        return ", ".join(f"`{choice}`" for choice in metadata["choices"])
    if metadata["minimum"] is None:
        return ""
    return f"{metadata['minimum']:,} to {metadata['maximum']:,}"


def _from_environment(environment: Mapping[str, str]) -> dict[str, tuple[object, str]]:
    found: dict[str, tuple[object, str]] = {}
    for variable, value in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in _NOT_SETTINGS:
            continue
        plain = variable.removesuffix(SECRET_FILE_SUFFIX)
        name = plain.removeprefix(ENVIRONMENT_PREFIX).lower()
        if plain != variable and name in secret_names():
            if plain in environment:
                raise InvalidInput(f"both {plain} and {variable} are set; keep one of them.")
            found[name] = (_secret_in_file(Path(value), variable), "secret file")
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        _require_known(name, f"environment variable {variable}")
        found[name] = (value, "environment")
    return found


def _secret_in_file(path: Path, variable: str) -> str:
    """What stands in the file; no message repeats any of it."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_SECRET_BYTES + 1)
        secret = content.decode("utf-8").strip()
    except OSError as error:
        raise InvalidInput(f"{variable} names {path}, which cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        # Not chained: the error of the codec carries the bytes.
        raise InvalidInput(f"{variable} names {path}, which is not UTF-8 text.") from None
    if not secret:
        # As an empty setting it would be ignored, and a server meant for PostgreSQL would open a new file.
        raise InvalidInput(f"{variable} names {path}, which is empty; write the secret into it.")
    if len(content) > _MAX_SECRET_BYTES or any(character in secret for character in "\r\n\0"):
        raise InvalidInput(
            f"{variable} names {path}, which is more than one line; it should hold the secret."
        )
    return secret


def _from_file(path: Path) -> dict[str, tuple[object, str]]:
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not valid TOML: {error}") from error
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror}; make it readable for this user, or choose another "
            "--data-dir."
        ) from error
    for name in content:
        _require_known(name, str(path))
    if "data_dir" in content:
        raise InvalidInput(
            f"{path} sets data_dir, but lies in that folder; use --data-dir or HIVEMEM_DATA_DIR."
        )
    return {name: (value, "file") for name, value in content.items()}


def _require_known(name: str, where: str) -> None:
    names = [spec.name for spec in fields(Settings)]
    if name in names:
        return
    nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else " `hivemem config show` lists all settings."
    raise InvalidInput(f"{where}: there is no setting {name!r}.{hint}")


def _convert(name: str, value: object, source: str) -> object:
    """`value` in the type of the field; text as in an environment variable is read, other types checked."""
    default = next(spec.default for spec in fields(Settings) if spec.name == name)
    where = f"{name} (from {source})"
    if name == "data_dir":
        return Path(str(value))
    if isinstance(default, tuple):
        items = value.split(",") if isinstance(value, str) else value
        if not isinstance(items, list | tuple):
            raise InvalidInput(f"{where} is {value!r}; give a list of names.")
        return tuple(text for item in cast("list[object]", items) if (text := str(item).strip()))
    if isinstance(default, str):
        if not isinstance(value, str):
            shown = "no text" if name in secret_names() else repr(value)
            raise InvalidInput(f"{where} is {shown}; give a text.")
        return value.strip()
    wanted = int if isinstance(default, int) else float
    if isinstance(value, str):
        try:
            return wanted(value.strip().replace("_", ""))
        except ValueError:
            raise InvalidInput(f"{where} is {value!r}; give a number.") from None
    if isinstance(value, bool) or not isinstance(value, int if wanted is int else int | float):
        raise InvalidInput(f"{where} is {value!r}; give {'a whole' if wanted is int else 'a'} number.")
    return wanted(value)


def _check_range(name: str, value: Any, metadata: Mapping[str, Any]) -> None:
    choices = metadata["choices"]
    if choices and value not in choices:
        raise InvalidInput(f"{name} is {value!r}; choose one of {', '.join(choices)}.")
    minimum, maximum = metadata["minimum"], metadata["maximum"]
    # Written so that NaN, which compares as false with everything, is refused too.
    if minimum is not None and not minimum <= value <= maximum:
        raise InvalidInput(f"{name} is {value!r}; it must be from {minimum:,} to {maximum:,}.")


def _check_cors_origin(value: str) -> None:
    if value == "*":
        raise InvalidInput(
            "cors_origins is '*', which would let every page on the web use a credential that it got hold "
            "of, through the browser of anybody who can reach this server; list the origins."
        )
    if not value or value.endswith("/"):
        raise InvalidInput(f"cors_origins has {value!r}; write an origin as in 'https://app.example.org'.")
    _check_origin("cors_origins", value)


def _check_form(name: str, value: str) -> None:
    # Here, and not where a model is loaded: that may fail for a while, and a mistake in writing stays.
    if not _MODEL_FORMS[name].fullmatch(value):
        raise InvalidInput(f"{name} is {value!r}; `hivemem config reference` lists its forms.")


def _check_network(value: str) -> None:
    # Imported here: most commands have no such setting.
    import ipaddress

    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError as error:
        raise InvalidInput(
            f"trusted_proxies has {value!r}; give addresses or networks, as in '127.0.0.1, 10.0.0.0/8'."
        ) from error


def _check_provider(issuer: str, client_id: str, required_claim: str) -> None:
    if required_claim and not all(part.strip() for part in required_claim.partition("=")):
        raise InvalidInput(f"oidc_required_claim is {required_claim!r}; write NAME=VALUE.")
    if not issuer:
        return
    try:
        parts = urlsplit(issuer)
        local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        fits = parts.scheme == "https" or (parts.scheme == "http" and local)
        fits = fits and bool(parts.hostname) and not (parts.query or parts.fragment or "@" in parts.netloc)
        _ = parts.port
    except ValueError:
        fits = False
    if not fits:
        raise InvalidInput(
            f"oidc_issuer is {issuer!r}; give the https address that the provider calls itself, without "
            "'/.well-known/openid-configuration'."
        )
    if not client_id:
        raise InvalidInput("oidc_issuer is set without oidc_client_id; register this server at the provider.")


def _check_origin(name: str, value: str) -> None:
    if not value:
        return
    try:
        parts = urlsplit(value)
        # Reading the port checks it.
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or not re.fullmatch(r"https?://[A-Za-z0-9.:\[\]_-]+/?", value):
        raise InvalidInput(
            f"{name} is {value!r}; give scheme and host only, as in 'https://memory.example.org'."
        )
