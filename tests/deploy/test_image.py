"""The Dockerfile and the compose file, read as an engine reads them; no engine is needed."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from hivemem.settings import load_settings, secret_names
from hivemem.surfaces.cli.main import build_parser

REPOSITORY = Path(__file__).resolve().parents[2]
DEPLOY = REPOSITORY / "deploy"
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]


def instructions() -> list[tuple[str, str]]:
    """(instruction, arguments) of the Dockerfile in order, continued lines joined and comments left out."""
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    found: list[tuple[str, str]] = []
    for line in filter(None, (line.strip() for line in joined.splitlines())):
        word, _, rest = line.partition(" ")
        assert re.fullmatch(r"[A-Z]+", word), line
        found.append((word, rest.strip()))
    return found


def final_stage() -> list[tuple[str, str]]:
    """The instructions of the image that runs."""
    found = instructions()
    last = max(index for index, (word, _) in enumerate(found) if word == "FROM")
    return found[last:]


def only(word: str) -> str:
    """The arguments of the one such instruction of the final stage."""
    (arguments,) = [rest for each, rest in final_stage() if each == word]
    return arguments


def variables() -> dict[str, str]:
    pairs = [pair for word, rest in final_stage() if word == "ENV" for pair in rest.split()]
    return dict(pair.split("=", 1) for pair in pairs)


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))


def test_nothing_is_fetched_but_by_the_package_installer() -> None:
    words = [word for word, _ in instructions()]
    assert "ADD" not in words
    assert words.count("FROM") == 2
    steps = " ".join(rest for word, rest in instructions() if word == "RUN")
    assert not re.search(r"\b(curl|wget|git|apt-get|apk)\b|https?://", steps)
    # Wheels alone: an sdist would run foreign code, and would need a compiler.
    assert "--only-binary :all:" in steps


def test_both_stages_share_one_base_so_that_the_environment_finds_its_interpreter() -> None:
    bases = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    assert set(bases) == {"${PYTHON_IMAGE}"}
    (image,) = [rest for word, rest in instructions() if word == "ARG" and rest.startswith("PYTHON_IMAGE")]
    version = re.search(r"python:(3\.\d+)-slim", image)
    assert version is not None and f"Programming Language :: Python :: {version[1]}" in PROJECT["classifiers"]


def test_the_final_image_has_neither_sources_nor_build_tools() -> None:
    copied = [rest for word, rest in final_stage() if word == "COPY"]
    assert copied == ["--from=build /opt/hivemem /opt/hivemem"]
    steps = " ".join(rest for word, rest in final_stage() if word == "RUN")
    assert "pip uninstall" in steps and "pip install" not in steps
    (made,) = [rest for word, rest in instructions() if word == "RUN" and "-m venv" in rest]
    assert "--without-pip" in made


def test_it_never_runs_as_root_and_its_user_is_a_number() -> None:
    user, _, group = only("USER").partition(":")
    assert int(user) >= 10_000 and user == group
    steps = " ".join(rest for word, rest in final_stage() if word == "RUN")
    assert f"--uid {user}" in steps and f"--owner {user} --group {group} --mode 0700 /data" in steps
    after = final_stage()[[word for word, _ in final_stage()].index("USER") :]
    assert "RUN" not in [word for word, _ in after]


def test_one_folder_is_written_to() -> None:
    assert only("VOLUME") == "/data"
    given = variables()
    assert {given["HIVEMEM_DATA_DIR"], given["TMPDIR"], only("WORKDIR")} == {"/data"}
    assert given["PYTHONDONTWRITEBYTECODE"] == "1"


def test_its_commands_and_settings_exist() -> None:
    assert only("ENTRYPOINT") == '["hivemem"]' and only("CMD") == '["serve"]'
    assert build_parser().parse_args(["serve"]).verb == "serve"
    probe = re.search(r"CMD hivemem (\w+) \|\| exit 1$", only("HEALTHCHECK"))
    assert probe is not None and build_parser().parse_args([probe[1]]).verb == "health"
    settings = load_settings({}, {name: value for name, value in variables().items() if "HIVEMEM" in name})
    assert str(settings.settings.port) == only("EXPOSE")
    extras = next(rest for word, rest in instructions() if word == "ARG" and rest.startswith("EXTRAS="))
    assert set(extras.removeprefix("EXTRAS=").split(",")) <= set(PROJECT["optional-dependencies"])


def test_what_the_build_copies_is_let_in_and_nothing_else_is() -> None:
    lines = (REPOSITORY / ".dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    first_stage = instructions()[: -len(final_stage())]
    sources = {
        name for word, rest in first_stage if word == "COPY" for name in rest.split()[:-1] if name != "src"
    }
    assert let_in == sources | {"src"}
    assert any(fnmatch.fnmatch("src/hivemem/__pycache__", rule) for rule in rules)
    # What the build backend reads besides the sources.
    assert {PROJECT["readme"], *PROJECT["license-files"]} <= let_in


@pytest.mark.parametrize("name", ["hivemem", "database"])
def test_every_service_is_locked_in(name: str) -> None:
    service = compose()["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"] and "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"] and service["pids_limit"] and service["restart"] == "unless-stopped"
    assert not {"privileged", "network_mode", "pid", "ipc", "devices"} & set(service)
    for port in service.get("ports", ()):
        assert port.startswith("127.0.0.1:")


def test_the_services_fit_together() -> None:
    file = compose()
    ours, database = file["services"]["hivemem"], file["services"]["database"]
    assert ours["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert database["healthcheck"]["test"][:2] == ["CMD", "pg_isready"]
    assert database["image"].startswith("postgres:18")
    # The image of 18 refuses a volume at the folder of the versions before it.
    assert database["volumes"] == ["database:/var/lib/postgresql"]
    assert ours["volumes"] == [f"data:{only('VOLUME')}"]
    assert set(file["volumes"]) == {"data", "database"}
    assert file["networks"]["database"] == {"internal": True}
    assert database["networks"] == ["database"] and "ports" not in database
    assert (DEPLOY / ours["build"]["context"]).resolve() == REPOSITORY
    assert (REPOSITORY / ours["build"]["dockerfile"]).is_file()


def test_secrets_come_from_files_alone(tmp_path: Path) -> None:
    file = compose()
    for service in file["services"].values():
        for name, value in service["environment"].items():
            assert "PASSWORD" not in name or name.endswith("_FILE")
            assert name.removeprefix("HIVEMEM_").lower() not in secret_names()
            if name.endswith("_FILE"):
                assert value.removeprefix("/run/secrets/") in service["secrets"]
        assert set(service["secrets"]) <= set(file["secrets"])
    # The names are settings, and the values are taken.
    (tmp_path / "database_url").write_text("postgresql://hivemem:s3cret@database/hivemem\n")
    environment = dict(file["services"]["hivemem"]["environment"])
    environment["HIVEMEM_DATABASE_URL_FILE"] = str(tmp_path / "database_url")
    environment["HIVEMEM_PUBLIC_URL"] = "https://memory.example.org"
    settings = load_settings({}, environment).settings
    assert settings.public_hosts == ("memory.example.org",)
    (network,) = file["networks"]["proxy"]["ipam"]["config"]
    assert settings.trusted_proxies == (network["gateway"],)
    for secret in file["secrets"].values():
        ignored = subprocess.run(
            ["git", "-C", str(REPOSITORY), "check-ignore", "-q", f"deploy/{secret['file']}"], check=False
        )
        assert ignored.returncode in (0, 128), f"deploy/{secret['file']} could be committed"
