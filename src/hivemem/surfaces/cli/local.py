"""Open the database in this process and run one command on it."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hivemem.domain.access import Principal
from hivemem.errors import HivememError, InvalidInput, Unavailable
from hivemem.settings import LoadedSettings, load_settings, secret_names
from hivemem.surfaces.cli.visible_secrets import warn_of_secrets
from hivemem.surfaces.envelope import USAGE_EXIT_CODE
from hivemem.surfaces.logs import configure_logging

if TYPE_CHECKING:
    # For annotations alone: it would pull in numpy and the models, which `config` does not need.
    from hivemem.surfaces.services import Services

ResultT = TypeVar("ResultT")


class SettingsProblem(InvalidInput):
    """Settings that cannot be used; the command ends like on a usage error."""

    exit_code = USAGE_EXIT_CODE


def loaded_settings(arguments: argparse.Namespace, **flags: object) -> LoadedSettings:
    """The effective settings of a command.

    Args:
        arguments: With the common options.
        flags: Settings that the command has options of its own for; None means not given.

    Raises:
        SettingsProblem: An unknown name or a bad value, wherever it was set.
    """
    warn_of_secrets(arguments, secret_names())
    given: dict[str, object] = {name: getattr(arguments, name, None) for name in ("data_dir", "database_url")}
    for override in getattr(arguments, "overrides", None) or ():
        name, equals, value = str(override).partition("=")
        if not equals:
            # Not repeated: what was meant as a value may be a secret.
            raise SettingsProblem("--set has an argument without '='; write --set NAME=VALUE.")
        given[name.strip().replace("-", "_")] = value
    given.update({name: value for name, value in flags.items() if value is not None})
    try:
        return load_settings(given)
    except HivememError as error:
        raise SettingsProblem(error.message) from error


def make_data_dir(folder: Path) -> None:
    """Create the data directory, readable for its owner alone.

    Raises:
        Unavailable: It cannot be created, or is not a folder.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(
            f"the data directory {folder} cannot be created: {error.strerror}; choose another --data-dir."
        ) from error


async def opened(loaded: LoadedSettings, *, stays: bool = False, models: bool = True) -> Services:
    """Open services over the data directory, which is created when it is new.

    Args:
        loaded: The settings.
        stays: Whether the process runs for long, so that work may be left to the background.
        models: Whether a model is needed.
    """
    # Imported here: this pulls in the models and numpy, and surfaces lie below the composition root.
    from hivemem.app import open_services

    make_data_dir(loaded.settings.data_dir)
    return await open_services(loaded.settings, background=stays, models=models)


async def local_principal(services: Services, arguments: argparse.Namespace) -> Principal:
    """The owner of the database, or whom `--for-user` names, at the graph that `--for-graph` names.

    Raises:
        NotFound: There is no such user.
        Forbidden: The graph is not one of theirs.
    """
    user = getattr(arguments, "for_user", None)
    graph_id = getattr(arguments, "for_graph", None)
    if user is None:
        return await services.access.local_principal(graph_id)
    return await services.access.principal_of(await services.people.found(user), graph_id)


def run_locally(
    arguments: argparse.Namespace,
    work: Callable[[Services, Principal], Awaitable[ResultT]],
    *,
    models: bool = True,
) -> ResultT:
    """Run `work` as the owner of the database, or as the user who was named, and close everything afterwards.

    Without `models` none is loaded: for work that neither embeds nor reads with one.
    """
    loaded = loaded_settings(arguments)
    # A command's user wants the result; the notices of a server are noise here.
    quiet = loaded.sources["log_level"] == "default"
    configure_logging(loaded.settings, level="warning" if quiet else None)

    async def session() -> ResultT:
        services = await opened(loaded, models=models)
        try:
            return await work(services, await local_principal(services, arguments))
        finally:
            await services.close()

    return asyncio.run(session())
