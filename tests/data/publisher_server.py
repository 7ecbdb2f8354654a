"""A local HTTP server that replays responses of publishers."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

CSV = "observation_date,DCOILWTICO\n2020-04-17,18.31\n2020-04-20,-36.98\n2020-04-21,.\n2020-04-22,\n2020-04-23,15.99\n"
HTML = "<!DOCTYPE html><html><head><title>Maintenance</title></head></html>"


def response(status=200, body=CSV, headers=(), cut=0, pause=0.0):
    return {"status": status, "body": body.encode(), "headers": dict(headers), "cut": cut, "pause": pause}


def fred_series(prices):
    """Answer requests for series as FRED does, from `cosd` on; `prices`: id -> ISO date -> price or None."""

    def answer(path, query):
        rows = [(day, "." if price is None else price) for day, price in sorted(prices[query["id"]].items())]
        rows = [row for row in rows if row[0] >= query.get("cosd", "")]
        lines = [f"observation_date,{query['id']}", *(f"{day},{price}" for day, price in rows)]
        return response(body="\n".join(lines) + "\n")

    return answer


def eia_series(prices, unit="$/BBL", page=5000):
    """Answer requests for series as the EIA does, newest first, from `start` on and in pages."""

    def answer(path, query):
        periods = sorted(prices[path.rpartition("/")[2]].items(), reverse=True)
        records = [{"period": day, "value": value, "units": unit} for day, value in periods]
        records = [record for record in records if record["period"] >= query.get("start", "")]
        first = int(query["offset"])
        content = {"total": str(len(records)), "data": records[first : first + page]}
        return response(body=json.dumps({"response": content}))

    return answer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        self.server.requests.append((url.path, query))
        responses = self.server.responses
        response = responses.pop(0) if len(responses) > 1 else responses[0]
        response = response(url.path, query) if callable(response) else response
        time.sleep(response["pause"])
        self.send_response(response["status"])
        for name, value in {"Content-Length": len(response["body"]), **response["headers"]}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(response["body"][: len(response["body"]) - response["cut"]])

    def log_message(self, *words):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that disconnected


@contextmanager
def serving(*responses):
    server = Server(("127.0.0.1", 0), Handler)
    server.responses, server.requests = list(responses), []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
