"""Bearer tokens, of a text or of a file that is read again while the server runs."""

import hmac
import logging
import time
from pathlib import Path

RELOAD_SECONDS = 1.0
log = logging.getLogger("torchcommodity.serve")


class Tokens:
    """Accepted bearer tokens, one per line.

    A file is read again on requests, at most once a second: tokens are changed without a restart, and clients change
    from the old to the new one while the file has both. If it cannot be read or has no valid token, which the log
    says, the tokens read before remain accepted.

    Args:
        source: the tokens, or the file that has them.
        name: of the text in messages, such as the environment variable that it comes from.

    Raises:
        ValueError: a token is not printable ASCII without spaces, or there is none.
        OSError: the file cannot be read.
    """

    def __init__(self, source: str | Path, name: str = "token") -> None:
        is_file = isinstance(source, Path)
        self._text = source.read_text("utf-8") if isinstance(source, Path) else source
        self._tokens = _parse(self._text, str(source) if is_file else name)
        # a pipe can be read only once
        self._file = source if isinstance(source, Path) and source.is_file() else None
        self._reload_at, self._problem = time.monotonic() + RELOAD_SECONDS, ""

    def accept(self, token: str) -> bool:
        """Whether a token is one of the accepted ones; the time it takes does not depend on which."""
        if self._file is not None and time.monotonic() >= self._reload_at:
            self._reload(self._file)
        received = token.encode("utf-8", "replace")
        matches = [hmac.compare_digest(received, accepted) for accepted in self._tokens]
        return any(matches)

    def _reload(self, file: Path) -> None:
        problem = ""
        try:
            if (text := file.read_text("utf-8")) != self._text:
                self._tokens, self._text = _parse(text, str(file)), text
                log.info("token file %s: %d tokens are accepted", file, len(self._tokens))
        except (OSError, ValueError) as error:
            problem = str(error)
            if problem != self._problem:
                log.error("token file %s: %s; the tokens read before remain accepted", file, problem)
        self._reload_at, self._problem = time.monotonic() + RELOAD_SECONDS, problem


def _parse(text: str, place: str) -> tuple[bytes, ...]:
    tokens = [line.strip() for line in text.splitlines() if line.strip()]
    for token in tokens or [""]:
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise ValueError(
                f"token: expected printable ASCII without spaces, one token per line, in {place}; "
                f"got {f'a line of {len(token)} characters' if token else 'none'}"
            )
    return tuple(token.encode() for token in tokens)
