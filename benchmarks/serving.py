"""Load on `torchcommodity serve` from another process: `python benchmarks/serving.py load|restart|kill`.

load      64 clients for 60 s, each with its next request as soon as the last is answered
restart   the same while the server is told to stop (SIGTERM) and started again: is any accepted request lost?
kill      the same while its worker is killed (SIGKILL): is any request left without an answer?

Real prices: those that come with `arch`. Every client keeps its connection.
"""

import argparse
import asyncio
import collections
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from torchcommodity import data, export, forecast

PATIENCE = 40.0  # seconds after which a request counts as never answered


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("what", choices=["load", "restart", "kill"])
    words.add_argument("--clients", type=int, default=64)
    words.add_argument("--seconds", type=float, default=60)
    words.add_argument("--rows", type=int, default=1000)
    words.add_argument("--symbols", default="WTI")
    words.add_argument("--workers", type=int, default=1)
    words.add_argument("--every", type=float, default=10, help="seconds between two stops or kills")
    asked = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        panel = data.embedded()[asked.symbols.split(",")]
        fitted = forecast.fit(panel.between("2006-01-01", "2017-12-31"))
        artifact = export.export(fitted, Path(folder) / "artifact.pt2")
        asyncio.run(measure(artifact, body(panel, asked.rows), asked))


def body(panel: data.Panel, rows: int) -> bytes:
    prices = panel.values.plain()[-rows:].tolist()
    instance = {"prices": [[p if p == p else None for p in row] for row in prices]}
    return json.dumps({"instances": [{**instance, "dates": list(map(str, panel.dates[-rows:]))}]}).encode()


async def measure(artifact: Path, sent: bytes, asked: argparse.Namespace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    told: collections.Counter[str] = collections.Counter()
    took: list[float] = []
    server, before = Server(artifact, port, asked.workers), os.getloadavg()[0]
    await server.start()
    async with health(port) as waits:
        end = time.monotonic() + asked.seconds
        clients = [asyncio.create_task(client(port, sent, end, told, took)) for _ in range(asked.clients)]
        await {"load": asyncio.sleep, "restart": server.restarts, "kill": server.kills}[asked.what](
            0, *disturb(asked, end)
        )
        await asyncio.gather(*clients)
    code = await server.stop()
    print(f"{asked.clients} clients, {asked.seconds:g} s, instances of {asked.rows} rows x {asked.symbols}, ", end="")
    print(f"{len(sent):,} bytes a request, {asked.workers} worker(s), {os.cpu_count()} cores, ", end="")
    print(f"load average {os.getloadavg()[0]:.1f} of the machine, {before:.1f} before")
    for outcome, count in sorted(told.items()):
        print(f"  {outcome:45} {count:8,}")
    took.sort()
    print(f"  answered a second {len(took) / asked.seconds:.1f}; ms " + ", ".join(quantiles(took)))
    print(f"  health while so, ms: {', '.join(quantiles(sorted(waits)))}; last exit code {code}, {server.events}")


def disturb(asked: argparse.Namespace, end: float) -> tuple[float, ...]:
    return () if asked.what == "load" else (asked.every, end)


def quantiles(took: list[float]) -> list[str]:
    places = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return [f"{name} {1000 * took[min(int(q * len(took)), len(took) - 1)]:.1f}" for name, q in places.items() if took]


async def client(port: int, sent: bytes, end: float, told: collections.Counter[str], took: list[float]) -> None:
    kind = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE)) as session:
        while time.monotonic() < end:
            start = time.perf_counter()
            try:
                async with session.post(f"http://127.0.0.1:{port}/predict", data=sent, headers=kind) as answer:
                    content = await answer.json()
                    whole = len(content["predictions"]) == 1 if answer.status == 200 else "error" in content
                    told[f"{answer.status}{'' if whole else ' cut short'}"] += 1
                    if answer.status == 200:
                        took.append(time.perf_counter() - start)
                        continue
            except aiohttp.ClientConnectorError:
                told["no connection, nothing was sent"] += 1
            except asyncio.TimeoutError:
                told["LOST: never answered"] += 1
            except (aiohttp.ClientError, ValueError) as problem:
                told[f"LOST: {type(problem).__name__}: {problem}"[:45]] += 1
            await asyncio.sleep(0.1)


@asynccontextmanager
async def health(port: int) -> AsyncIterator[list[float]]:
    """How long a health check takes, ten times a second."""
    waits: list[float] = []

    async def ask() -> None:
        async with aiohttp.ClientSession() as session:
            while True:
                start = time.perf_counter()
                try:
                    async with session.get(f"http://127.0.0.1:{port}/health") as answer:
                        await answer.read()
                        waits.append(time.perf_counter() - start)
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.1)

    task = asyncio.create_task(ask())
    yield waits
    task.cancel()


class Server:
    """`torchcommodity serve` as a process of its own."""

    def __init__(self, artifact: Path, port: int, workers: int) -> None:
        self.port = port
        self.command = [sys.executable, "-m", "torchcommodity", "serve", str(artifact), "--port", str(port)]
        self.command += ["--workers", str(workers)]
        self.events: collections.Counter[str] = collections.Counter()

    async def start(self) -> None:
        self.process = subprocess.Popen(self.command, stderr=subprocess.DEVNULL)
        async with aiohttp.ClientSession() as session:
            while self.process.poll() is None:
                try:
                    async with session.get(f"http://127.0.0.1:{self.port}/health") as answer:
                        if answer.status == 200:
                            return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.2)
        sys.exit(f"the server ended with {self.process.returncode}")

    async def stop(self) -> int:
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(self.process.wait, 60)
        self.events[f"stopped with {code}"] += 1
        self.longest = max(getattr(self, "longest", 0.0), time.monotonic() - begun)
        return code

    async def restarts(self, _now: float, every: float, end: float) -> None:
        while time.monotonic() + every < end:
            await asyncio.sleep(every)
            await self.stop()
            await self.start()
        print(f"longest stop {self.longest:.1f} s")

    async def kills(self, _now: float, every: float, end: float) -> None:
        while time.monotonic() + every < end:
            await asyncio.sleep(every)
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            worker = next(p for p in children if "spawn_main" in Path(f"/proc/{p}/cmdline").read_text())
            os.kill(int(worker), signal.SIGKILL)
            self.events["workers killed"] += 1


if __name__ == "__main__":
    main()
