"""Client of Offstage: background coding agents, a prompt in, one pull request out.

It needs nothing but Python 3.9 or newer. Without arguments it takes OFFSTAGE_SERVER and OFFSTAGE_API_KEY.
"""

from __future__ import annotations

import json
import random
import time
from http.client import HTTPException
from typing import Any, Callable, Dict, Iterator, Optional
from urllib.parse import quote

from ._operations import Operations
from ._send import STRANGE_ANSWER, OffstageError, Send
from ._webhooks import WebhookVerificationError, verify_webhook

__all__ = ["Offstage", "OffstageError", "WebhookVerificationError", "every_item", "verify_webhook"]

_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 10.0


class Offstage(Operations):
    """A client of one server: each operation of the API by its noun, and events as they happen."""

    def __init__(
        self,
        server: Optional[str] = None,
        key: Optional[str] = None,
        *,
        retries: int = 4,
        timeout_seconds: float = 60.0,
    ) -> None:
        self._send_request = Send(server, key, retries=retries, timeout_seconds=timeout_seconds)
        super().__init__(self._send_request)

    def events(self, session_id: str, *, after: int = 0) -> Iterator[Dict[str, Any]]:
        """A session's events in order, each once, until it has ended. A lost connection is made again from the last one."""
        seen, failures, is_known = after, 0, False
        while True:
            try:
                path = f"/session/{quote(session_id, safe='')}/events"
                headers = {"Accept": "text/event-stream", "Last-Event-ID": str(seen)}
                with self._send_request.open("GET", path, headers=headers) as response:
                    # Once there was a stream, it is a page of something before the server, which will be back.
                    if not is_known and response.headers.get_content_type() != "text/event-stream":
                        raise OffstageError(response.status, STRANGE_ANSWER)
                    is_known = True
                    for name, data in _messages(response):
                        failures = 0
                        if name == "end":
                            return
                        event = json.loads(data)
                        if event["seq"] <= seen:
                            continue
                        seen = event["seq"]
                        yield event
            except OffstageError as error:
                if 0 < error.status < 500 and error.status != 429:
                    raise
            except (OSError, HTTPException):
                pass
            time.sleep(min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**failures) * (1 + random.random()))
            failures += 1


def every_item(list_page: Callable[..., Dict[str, Any]], **query: Any) -> Iterator[Dict[str, Any]]:
    """All items of a list, page by page, as they are asked for: ``every_item(offstage.session.list, status="running")``."""
    while True:
        page = list_page(**query)
        for value in page.values():
            if isinstance(value, list):
                yield from value
        if page.get("nextCursor") is None:
            return
        query["cursor"] = page["nextCursor"]


def _messages(response: Any) -> Iterator[Any]:
    """The messages of an event stream (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""
    name, data = "", []
    for raw in response:
        line = raw.decode().rstrip("\r\n")
        if line == "":
            if data:
                yield name, "\n".join(data)
            name, data = "", []
        elif line.startswith("event:"):
            name = line[len("event:") :].strip()
        elif line.startswith("data:"):
            data.append(line[len("data:") :].removeprefix(" "))
