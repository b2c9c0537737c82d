"""One POST of JSON to a model server, with its failures as hivemem's errors.

The API key is sent in one header, to the configured address only (redirects are not followed), and
never appears in a message, even when the server echoes it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx2

from hivemem.errors import Corruption, InvalidInput, Unavailable

# A wait of up to this long inside a call; when the server asks for more, the caller hears it at once.
_LONGEST_WAIT_SECONDS = 5.0

# Enough of a server's own words to find the cause, too little to fill a log.
_QUOTED_CHARACTERS = 200


class JsonEndpoint:
    """A URL that takes and gives JSON.

    Args:
        url: Where to POST.
        api_key: Sent as a bearer token; None for none.
        timeout_seconds: For connecting, and for each wait for bytes.
        wait: Called with seconds before the one retry; replaced in tests.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout_seconds: float = 10.0,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        try:
            parsed = httpx2.URL(url)
        except httpx2.InvalidURL as error:
            raise InvalidInput(f"{url!r} is not a URL: {error}") from error
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise InvalidInput(f"{url!r} is not an http or https URL")
        if timeout_seconds <= 0:
            raise InvalidInput(f"timeout_seconds={timeout_seconds} must be positive")
        self._url = parsed
        # Without user, password and query, any of which may be secret.
        self.name = str(parsed.copy_with(username=None, password=None, query=None))
        self._key = api_key
        self._wait = wait
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx2.Client(timeout=timeout_seconds, headers=headers)

    def close(self) -> None:
        """Close the kept connections."""
        self._client.close()

    def post(self, payload: Mapping[str, Any]) -> Any:
        """The parsed answer.

        429 and 503 are tried once more, after the server's `Retry-After` (at most 5 seconds).

        Raises:
            Unavailable: The server cannot be reached, is too slow, or refuses.
            Corruption: The answer is not JSON.
        """
        response = self._send(payload)
        if response.status_code in (429, 503):
            asked = _retry_after(response)
            if asked <= _LONGEST_WAIT_SECONDS:
                self._wait(asked)
                response = self._send(payload)
        if response.is_success:
            try:
                return response.json()
            except ValueError as error:
                raise Corruption(
                    f"the answer of {self.name} is not JSON: {self._quote(response)!r}"
                ) from error
        problem = f"{self.name} answered {response.status_code}: {self._quote(response)!r}"
        match response.status_code:
            case 401 | 403:
                raise Unavailable(f"{problem}; check the API key of this model")
            case 429 | 503:
                raise Unavailable(problem, retry_after_seconds=min(math.ceil(_retry_after(response)), 3600))
            case code if 300 <= code < 500:
                raise Unavailable(f"{problem}; check the address and the model's name")
            case _:
                raise Unavailable(problem)

    def _send(self, payload: Mapping[str, Any]) -> httpx2.Response:
        try:
            return self._client.post(self._url, json=payload)
        except httpx2.TimeoutException as error:
            raise Unavailable(f"{self.name} did not answer in time ({type(error).__name__})") from error
        except httpx2.HTTPError as error:
            raise Unavailable(f"{self.name} cannot be reached: {self._hide(str(error))}") from error

    def _quote(self, response: httpx2.Response) -> str:
        return self._hide(response.text)[:_QUOTED_CHARACTERS]

    def _hide(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


def _retry_after(response: httpx2.Response) -> float:
    """Seconds asked for; one second when the header is absent or a date."""
    try:
        seconds = float(response.headers.get("retry-after", "1"))
    except ValueError:
        return 1.0
    return seconds if 0 <= seconds < math.inf else 1.0
