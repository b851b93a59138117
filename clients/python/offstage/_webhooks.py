"""Checks deliveries of webhooks (Standard Webhooks, https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any, Dict, Mapping, Union

_OLDEST_SECONDS = 300


class WebhookVerificationError(Exception):
    """The delivery did not come from the server, or is too old."""


def verify_webhook(body: Union[str, bytes], headers: Mapping[str, str], secret: str) -> Dict[str, Any]:
    """What was delivered.

    ``body`` is as it arrived, byte for byte; ``secret`` is what the webhook was created with, ``whsec_…``.
    """
    content = body if isinstance(body, bytes) else body.encode()
    given = {name.lower(): value for name, value in headers.items()}
    delivery, at = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    try:
        is_fresh = abs(time.time() - int(at)) <= _OLDEST_SECONDS
    except ValueError:
        is_fresh = False
    if not is_fresh:
        raise WebhookVerificationError("the delivery is older than five minutes, or has no time")
    key = base64.b64decode(secret[len("whsec_") :] if secret.startswith("whsec_") else secret)
    signed = f"{delivery}.{at}.".encode() + content
    wanted = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    signatures = given.get("webhook-signature", "").split()
    if not any(hmac.compare_digest(each.encode(), wanted.encode()) for each in signatures):
        raise WebhookVerificationError("the delivery's signature is wrong")
    return json.loads(content)
