"""Background refresh reports errors and keeps the last document."""

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
