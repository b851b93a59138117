"""Sends requests to an Offstage server, again if they fail for a passing reason."""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from http.client import HTTPException, HTTPResponse
from typing import Any, List, Mapping, Optional
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

_PASSING = {429, 502, 503, 504}
_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 10.0
STRANGE_ANSWER = "the answer is none of Offstage's: check the server's address"


class OffstageError(Exception):
    """The server refused a request, or could not be reached (status 0)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Send:
    """Sends requests with one key to one server."""

    def __init__(
        self,
        server: Optional[str] = None,
        key: Optional[str] = None,
        *,
        retries: int = 4,
        timeout_seconds: float = 60.0,
    ) -> None:
        chosen = server or os.environ.get("OFFSTAGE_SERVER") or "http://127.0.0.1:4747"
        self._server = chosen.rstrip("/")
        self._key = key or os.environ.get("OFFSTAGE_API_KEY")
        self._retries = retries
        self._timeout_seconds = timeout_seconds

    def __call__(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        body: Optional[Mapping[str, Any]] = None,
        creates: bool = False,
        idempotency_key: Optional[str] = None,
        is_json: bool = True,
    ) -> Any:
        """One call of the API; what creates something gets an Idempotency-Key, so that it can be sent again."""
        headers = {}
        if creates:
            headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        may_repeat = method == "GET" or creates
        for tries in range(self._retries + 1):
            try:
                with self.open(method, path, query=query, body=body, headers=headers) as response:
                    content = self._read(response)
                    return _parsed(response.status, content) if is_json else content
            except OffstageError as error:
                is_passing = error.status == 0 or error.status in _PASSING
                if not is_passing or not may_repeat or tries == self._retries:
                    raise
                time.sleep(max(_pause(tries), getattr(error, "retry_after", 0.0)))
        raise AssertionError("unreachable")

    def _read(self, response: HTTPResponse) -> bytes:
        """The whole answer, in the midst of which the connection may be lost."""
        try:
            return response.read()
        except (HTTPException, OSError) as error:
            raise OffstageError(0, f"{self._server} can't be reached: {error}") from error

    def open(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        body: Optional[Mapping[str, Any]] = None,
        headers: Mapping[str, str] = {},
    ) -> HTTPResponse:
        """Sends one request, once. Whoever calls closes the answer."""
        given = {name: _texts(value) for name, value in (query or {}).items() if value is not None}
        address = self._server + path + ("?" + urlencode(given, doseq=True) if given else "")
        data = None
        all_headers = dict(headers)
        if self._key:
            all_headers["Authorization"] = "Bearer " + self._key
        if method == "POST":
            data = json.dumps(body or {}).encode()
            all_headers["Content-Type"] = "application/json"
        request = Request(address, data=data, headers=all_headers, method=method)
        try:
            return urlopen(request, timeout=self._timeout_seconds)
        except HTTPError as error:
            raise _refusal(error) from None
        except (URLError, HTTPException, OSError) as error:
            raise OffstageError(0, f"{self._server} can't be reached: {error}") from error


def _texts(value: Any) -> List[str]:
    """The values of a parameter of the query: a list gives it several times."""
    values = value if isinstance(value, (list, tuple)) else [value]
    return [str(each).lower() if isinstance(each, bool) else str(each) for each in values]


def _parsed(status: int, content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        raise OffstageError(status, STRANGE_ANSWER) from None


def _pause(tries: int) -> float:
    return min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**tries) * (1 + random.random())


def _refusal(error: HTTPError) -> OffstageError:
    sentence = f"the server answered {error.code}"
    try:
        message = json.loads(error.read()).get("error")
        if isinstance(message, str):
            sentence = message
    except (ValueError, AttributeError, OSError, HTTPException):
        pass
    refusal = OffstageError(error.code, sentence)
    try:
        refusal.retry_after = float(error.headers.get("Retry-After") or 0)  # type: ignore[attr-defined]
    except ValueError:
        pass
    return refusal
