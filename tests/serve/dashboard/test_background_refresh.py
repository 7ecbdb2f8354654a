"""Background refresh reports errors and keeps the last document."""

import threading
from typing import Any

from torchcommodity.serve.dashboard._background_refresh import BackgroundRefresh


def test_background_refresh_reports_errors_and_keeps_the_document() -> None:
    results: list[Any] = [ValueError("no file prices.csv"), {"state": "ready"}, OSError("disk"), RuntimeError("secret")]

    def make_document() -> dict[str, Any]:
        result: dict[str, Any] | Exception = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    refresh = BackgroundRefresh(make_document, interval_seconds=0.0)

    def finished() -> tuple[Any, str]:
        refresh._due = 0.0
        snapshot = refresh.snapshot()
        while snapshot.refreshing:
            snapshot = refresh.snapshot()
        return snapshot.document, snapshot.error

    assert finished() == (None, "no file prices.csv")
    assert finished() == ({"state": "ready"}, "")
    assert finished() == ({"state": "ready"}, "disk")
    document, message = finished()
    assert document == {"state": "ready"}
    assert message == "internal error while refreshing the dashboard; see the server's log"


def test_background_refresh_completes_an_outlook_without_another_request() -> None:
    documents, completing, checked = [{"state": "outlook"}, {"state": "ready"}], threading.Event(), threading.Event()

    def make_document() -> dict[str, Any]:
        if len(documents) == 1:
            completing.set()
            checked.wait(60)
        return documents.pop(0)

    refresh = BackgroundRefresh(make_document)
    refresh.snapshot()
    assert completing.wait(60)
    assert refresh.snapshot() == ({"state": "outlook"}, "", True)
    checked.set()
    while (snapshot := refresh.snapshot()).refreshing:
        pass
    assert snapshot == ({"state": "ready"}, "", False)
