"""A local S3 server, moto, behind a proxy that can fail: answer 503, or drop the connection inside a request."""

import asyncio
import threading
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fsspec.asyn import get_loop
from moto.server import ThreadedMotoServer


class Proxy(BaseHTTPRequestHandler):
    """Forwards to moto. `server.faults` is a list of (method, status); status 0 drops the connection half-way."""

    protocol_version = "HTTP/1.1"

    def do_any(self):
        self.server.requests.append((self.command, self.path))
        fault = next((fault for fault in self.server.faults if fault[0] == self.command), None)
        if fault is not None:
            self.server.faults.remove(fault)
            return self._drop() if not fault[1] else self._answer(fault[1], {}, b"")
        length = int(self.headers.get("Content-Length", 0))
        content = self.rfile.read(length)
        # closed also when moto answers without reading the request, and sending it fails
        with closing(HTTPConnection("127.0.0.1", self.server.backend)) as connection:
            connection.request(self.command, self.path, content, dict(self.headers))
            response = connection.getresponse()
            status, headers, body = response.status, response.getheaders(), response.read()
        own = ("Connection", "Server", "Date")
        return self._answer(status, {name: value for name, value in headers if name not in own}, body)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = do_any  # noqa: N815

    def _drop(self):
        """Read a part of the body, and close without an answer."""
        self.rfile.read(min(1024, int(self.headers.get("Content-Length", 0))))
        self.close_connection = True
        self.connection.close()

    def _answer(self, status, headers, body):
        self.send_response_only(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *words):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a connection that was dropped on purpose


def wait_for_uploads():
    """Until the parts of a failed upload are through: s3fs tries them again, and draws from the random module."""

    async def finish():
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(tasks)

    asyncio.run_coroutine_threadsafe(finish(), get_loop()).result(30)


@contextmanager
def serving_s3():
    """The proxy (with `address`, `faults`, `requests`) of a moto server on the loopback interface."""
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    proxy = Server(("127.0.0.1", 0), Proxy)
    proxy.backend, proxy.faults, proxy.requests = moto.get_host_and_port()[1], [], []
    proxy.address = f"http://127.0.0.1:{proxy.server_port}"
    thread = threading.Thread(target=proxy.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()
        moto.stop()
