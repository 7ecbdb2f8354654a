"""Log lines: one JSON object each, for records, uncaught exceptions and what other libraries write."""

import json
import logging
import subprocess
import sys

from torchcommodity.serve.http._logs import JsonFormatter, request_id


def test_record_is_one_json_object() -> None:
    record = logging.LogRecord("a.logger", logging.ERROR, "file.py", 1, "%d rows\nof WTI", (3,), None)
    record.created, record.fields = 0.0625, {"status": 500}
    context = request_id.set("desk-7")
    line = JsonFormatter().format(record)
    request_id.reset(context)
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "1970-01-01T00:00:00.062Z",
        "level": "error",
        "logger": "a.logger",
        "message": "3 rows\nof WTI",
        "request_id": "desk-7",
        "status": 500,
    }


PROGRAM = """
import atexit, os, sys, threading
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("logs", sys.argv[1])
logs = module_from_spec(spec)
spec.loader.exec_module(logs)
atexit.register(logs.redirect_stderr())
os.system("echo from a child >&2")
os.system("echo Error: of a command >&2")
os.write(2, b'{"passes": 1}\\n')
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
raise ValueError("of the main thread")
"""


def test_everything_on_stderr_is_json() -> None:
    path = sys.modules[JsonFormatter.__module__].__file__
    result = subprocess.run([sys.executable, "-c", PROGRAM, path], capture_output=True, text=True)
    entries = list(map(json.loads, result.stderr.splitlines()))
    assert [entry.get("message") for entry in entries] == [
        "from a child",
        "Error: of a command",
        None,
        "ZeroDivisionError: division by zero",
        "ValueError: of the main thread",
    ]
    assert [entry.get("level") for entry in entries] == ["warning", "error", None, "critical", "critical"]
    assert "Traceback" in entries[-1]["exception"]
