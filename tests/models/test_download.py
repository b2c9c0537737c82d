"""A repository is downloaded once, checked, and repaired when its files were damaged."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from hivemem.errors import Corruption, InvalidInput, Unavailable
from hivemem.models.download import MANIFEST_FILE, repository_files
from hivemem.models.weights import MODEL_FILE, ModelFiles
from tests.models.server import Answer, Asked, TestServer, serving

MODEL = bytes(range(256)) * 5_000
TOKENIZER = b'{"tokenizer": true}'


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def repository(asked: Asked) -> Answer:
    """What the hub does: a small file at once, a large one behind a redirect that describes it."""
    match asked.path:
        case "/owner/name/resolve/main/tokenizer.json":
            etag = hashlib.sha1(b"blob %d\0" % len(TOKENIZER) + TOKENIZER).hexdigest()
            return Answer(TOKENIZER, headers={"ETag": f'"{etag}"'})
        case "/owner/name/resolve/main/onnx/model.onnx":
            headers = {
                "Location": "/blob",
                "X-Linked-Size": str(len(MODEL)),
                "X-Linked-ETag": f'"{sha256(MODEL)}"',
            }
            return Answer(status=302, headers=headers)
        case "/blob":
            return Answer(MODEL, headers={"ETag": '"something else"'})
        case _:
            return Answer(b"no such file", status=404)


@pytest.fixture
def hub() -> Iterator[TestServer]:
    with serving(repository) as server:
        yield server


def fetch(hub: TestServer, cache: Path, **options: str) -> ModelFiles:
    return repository_files("owner/name", cache, base_url=hub.url, progress=io.StringIO(), **options)


def test_files_are_downloaded_once_and_found_without_network_afterwards(
    hub: TestServer, tmp_path: Path
) -> None:
    files = fetch(hub, tmp_path)
    requests = len(hub.asked)
    again = fetch(hub, tmp_path)

    assert files.model.read_bytes() == MODEL
    assert files.tokenizer.read_bytes() == TOKENIZER
    assert files.model_id == f"owner/name:{sha256(MODEL)[:12]}"
    assert again == files
    assert len(hub.asked) == requests == 3
    assert not list(tmp_path.rglob("*.part"))


def test_progress_goes_to_the_given_stream_and_never_to_standard_output(
    hub: TestServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repository_files("owner/name", tmp_path, base_url=hub.url)

    shown = capsys.readouterr()
    assert shown.out == ""
    assert MODEL_FILE in shown.err


def test_a_file_that_was_cut_later_is_downloaded_again(hub: TestServer, tmp_path: Path) -> None:
    files = fetch(hub, tmp_path)
    files.model.write_bytes(MODEL[:1_000])

    assert fetch(hub, tmp_path).model.read_bytes() == MODEL


def test_without_a_manifest_the_download_never_ended(hub: TestServer, tmp_path: Path) -> None:
    files = fetch(hub, tmp_path)
    files.model.parent.joinpath(MANIFEST_FILE).unlink()
    requests = len(hub.asked)

    fetch(hub, tmp_path)

    assert len(hub.asked) > requests


def test_wrong_bytes_are_refused_after_one_repetition_and_leave_nothing_behind(
    hub: TestServer, tmp_path: Path
) -> None:
    hub.answer = lambda asked: Answer(MODEL[::-1]) if asked.path == "/blob" else repository(asked)

    with pytest.raises(Corruption, match=sha256(MODEL)):
        fetch(hub, tmp_path)

    assert [asked.path for asked in hub.asked].count("/blob") == 2
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_small_file_is_checked_against_its_git_hash(hub: TestServer, tmp_path: Path) -> None:
    def altered(asked: Asked) -> Answer:
        answer = repository(asked)
        return Answer(b"x" * len(TOKENIZER), headers=answer.headers) if "tokenizer" in asked.path else answer

    hub.answer = altered

    with pytest.raises(Corruption, match=r"tokenizer\.json"):
        fetch(hub, tmp_path)


def test_one_broken_connection_is_repeated(hub: TestServer, tmp_path: Path) -> None:
    def breaks_once(asked: Asked) -> Answer:
        first = [seen.path for seen in hub.asked].count("/blob") == 1
        if asked.path == "/blob" and first:
            return Answer(MODEL[:1_000], headers={"Content-Length": str(len(MODEL)), "Connection": "close"})
        return repository(asked)

    hub.answer = breaks_once

    assert fetch(hub, tmp_path).model.read_bytes() == MODEL


def test_a_server_that_is_down_is_unavailable(hub: TestServer, tmp_path: Path) -> None:
    hub.answer = lambda asked: Answer(status=500)

    with pytest.raises(Unavailable, match="answered 500"):
        fetch(hub, tmp_path)


def test_no_server_at_all_is_unavailable(tmp_path: Path) -> None:
    with serving(repository) as gone:
        pass

    with pytest.raises(Unavailable, match="cannot be downloaded"):
        fetch(gone, tmp_path)


def test_a_missing_repository_is_said_at_once(hub: TestServer, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="answered 404"):
        fetch(hub, tmp_path, model_path="onnx/other.onnx")

    assert len(hub.asked) == 1


def test_the_token_is_not_sent_to_the_host_that_a_redirect_names(hub: TestServer, tmp_path: Path) -> None:
    with serving(repository) as elsewhere:

        def redirects(asked: Asked) -> Answer:
            answer = repository(asked)
            if answer.status != 302:
                return answer
            return Answer(status=302, headers={**answer.headers, "Location": elsewhere.url + "/blob"})

        hub.answer = redirects
        fetch(hub, tmp_path, token="secret")

        assert hub.asked[0].headers["authorization"] == "Bearer secret"
        assert "authorization" not in elsewhere.asked[0].headers


@pytest.mark.parametrize(
    "name", ["", "../etc", "owner/../..", "/absolute", "owner/name?x=1", "a//b", "owner/.git"]
)
def test_names_that_would_leave_the_cache_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a repository"):
        repository_files(name, tmp_path)
