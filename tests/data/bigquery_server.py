"""A local server that holds the dialogue of BigQuery's REST API with a client, after Google's reference of the API.

It answers requests for tokens, tables, rows and load jobs; a load job decodes the Parquet file that it is sent.
"""

import io
import json
import threading
from contextlib import contextmanager
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

TYPES = {pa.date32(): "DATE", pa.string(): "STRING", pa.float64(): "FLOAT"}
PAGE = 1000  # rows


def failure(status, reason, message):
    return status, {"error": {"code": status, "message": message, "errors": [{"reason": reason, "message": message}]}}


def name_of(table):
    return f"{table['projectId']}.{table['datasetId']}.{table['tableId']}"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/token":
            return self.answer(200, {"access_token": "ya29.token", "expires_in": 3600, "token_type": "Bearer"})
        return self.answer(*self.load(body))

    def do_GET(self):
        url = urlsplit(self.path)
        parts, query = url.path.strip("/").split("/"), parse_qs(url.query)
        self.server.tokens.append(self.headers["Authorization"])
        if parts[4] == "jobs":
            return self.answer(200, self.server.jobs[parts[5]])
        table = self.server.tables.get(".".join((parts[3], parts[5], parts[7])))
        if table is None:
            return self.answer(*failure(404, "notFound", "Not found: Table"))
        return self.answer(200, self.rows(table, query) if parts[-1] == "data" else self.describe(table, parts))

    def load(self, body):
        """A load job by multipart upload: JSON, then Parquet."""
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        metadata, content = BytesParser().parsebytes(head + body).get_payload()
        job = json.loads(metadata.get_payload())
        self.server.loads.append(job["configuration"]["load"])
        target = job["configuration"]["load"]["destinationTable"]
        if target["datasetId"] != "oil":
            return failure(404, "notFound", f"Not found: Dataset {target['datasetId']}")
        job |= {"status": {"state": "DONE"}, "kind": "bigquery#job"}
        if self.server.load_error:
            job["status"] |= {"errorResult": self.server.load_error, "errors": [self.server.load_error]}
        else:
            self.server.tables[name_of(target)] = pq.read_table(io.BytesIO(content.get_payload(decode=True)))
        self.server.jobs[job["jobReference"]["jobId"]] = job
        return 200, job

    def describe(self, table, parts):
        fields = [{"name": field.name, "type": TYPES[field.type], "mode": "NULLABLE"} for field in table.schema]
        reference = {"projectId": parts[3], "datasetId": parts[5], "tableId": parts[7]}
        return {"tableReference": reference, "schema": {"fields": fields}, "numBytes": str(table.nbytes)}

    def rows(self, table, query):
        start = int(query.get("pageToken", ["0"])[0])
        page = table.slice(start, PAGE).to_pylist()
        rows = [{"f": [{"v": None if cell is None else str(cell)} for cell in row.values()]} for row in page]
        token = {"pageToken": str(start + PAGE)} if start + PAGE < table.num_rows else {}
        return {"totalRows": str(table.num_rows), "rows": rows, **token}

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


@contextmanager
def serving_bigquery():
    """The server, with `address`, `tables`, `loads` and `load_error`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.tables, server.jobs, server.loads, server.tokens, server.load_error = {}, {}, [], [], None
    server.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
