"""Conditional requests: every response to GET has an ETag, and 304 in place of what the client has."""

import hashlib
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ENTITY_TAG = re.compile(r'"[\x21\x23-\x7e\x80-\xff]*"')  # without W/: If-None-Match compares weakly


class ConditionalMiddleware:
    """Adds an ETag to complete responses to GET, and responds 304 where If-None-Match has it, as Django does.

    ETags are weak: a response has the same one with and without compression.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET":
            condition = ", ".join(Headers(scope=scope).getlist("if-none-match"))
            send = ConditionalResponse(condition, send).send
        await self.app(scope, receive, send)


class ConditionalResponse:
    """ASGI `send` of one response."""

    def __init__(self, condition: str, send: Send) -> None:
        self._condition, self._send = condition, send
        self._start: Message = {}
        self._not_modified = False

    async def send(self, message: Message) -> None:
        """Pass a message on; the first one together with the second, which the ETag depends on."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        if self._start:
            start, self._start = self._start, {}
            headers = MutableHeaders(scope=start)
            if start["status"] == 200 and "etag" not in headers and not message.get("more_body", False):
                headers["ETag"] = f'"{hashlib.sha256(message.get("body", b"")).hexdigest()[:32]}"'
            tag = headers.get("etag", "").removeprefix("W/")
            if start["status"] == 200 and tag:
                headers["ETag"] = f"W/{tag}"
                if is_listed(tag, self._condition):
                    self._not_modified, start["status"] = True, 304
                    headers.add_vary_header("Accept-Encoding")
                    for name in ("content-length", "content-type", "content-encoding"):
                        del headers[name]
            await self._send(start)
        if not self._not_modified:
            await self._send(message)
        elif not message.get("more_body", False):
            await self._send({"type": "http.response.body"})


def is_listed(tag: str, condition: str) -> bool:
    """Whether the value of If-None-Match has an entity tag.

    >>> is_listed('"a,b"', 'W/"x", W/"a,b"'), is_listed('"a"', "*"), is_listed('"a"', "a"), is_listed('"a"', "")
    (True, True, False, False)
    """
    return condition.strip() == "*" or tag in ENTITY_TAG.findall(condition)
