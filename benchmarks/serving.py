"""Load test of `torchcommodity serve`: `python benchmarks/serving.py table|crashes|load|restart|kill`.

table     `load` for 1 and 64 clients, 1 and 10 symbols, pt2 and AOTInductor, beside FastAPI and LitServe
load      clients send requests back to back
restart   the same, while the server is stopped (SIGTERM) and started again: are accepted requests lost?
kill      the same, while the worker process is killed (SIGKILL): are requests left without a response?
crashes   `restart` and `kill`, as a table

Clients run in this process, the server in another. Each client keeps its connection. Prices: embedded WTI.
"""

import argparse
import asyncio
import collections
import contextlib
import importlib.util
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
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from markdown import environment, format_table, replace_table

from torchcommodity import data, export, forecast

CLIENT_TIMEOUT = 40.0  # seconds after which a request counts as lost
RETRY_SECONDS = 0.1


@dataclass
class Results:
    """Outcomes of all requests."""

    outcomes: collections.Counter[str] = field(default_factory=collections.Counter)
    latencies: list[float] = field(default_factory=list)  # of successful predictions
    health_latencies: list[float] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", choices=["table", "crashes", "load", "restart", "kill"])
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--symbols", default="WTI")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--page", type=Path, help="Markdown page whose table is replaced")
    parser.add_argument("--interval", type=float, default=10, help="Seconds between two restarts or kills")
    arguments = parser.parse_args()
    if arguments.scenario == "table":
        write_table(arguments)
        return
    with tempfile.TemporaryDirectory() as folder:
        panel = data.embedded(arguments.symbols.split(","))
        forecaster = forecast.fit(panel.between("2006-01-01", "2017-12-31"))
        artifact = export.export(forecaster, Path(folder) / "artifact.pt2")
        body = request_body(panel, arguments.rows)
        scenarios = ["restart", "kill"] if arguments.scenario == "crashes" else [arguments.scenario]
        rows = [asyncio.run(measure(scenario, artifact, body, arguments)) for scenario in scenarios]
    heads = ["", "predictions", "503, try again", "lost", "p50, ms", "p99, ms", "health check p99, ms"]
    if arguments.page:
        setting = (
            f"{arguments.clients} clients for {arguments.seconds:g} s, {arguments.workers} worker, {arguments.rows} "
            f"rows of {arguments.symbols} per request ({len(body) / 1e3:.0f} KB), a stop every {arguments.interval:g} s"
        )
        replace_table(arguments.page, "crashes", f"{format_table(heads, rows)}\n\n{environment(setting)}")


def write_table(arguments: argparse.Namespace) -> None:
    lines = [
        "| symbols | clients | server | requests/s | p50, ms | p99, ms | CPU ms per request |",
        "|---:|---:|---|---:|---:|---:|---:|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for symbols in (["WTI"], list(data.embedded_symbols()[:10])):
            panel = data.embedded(symbols)
            forecaster = forecast.fit(panel.between("2006-01-01", "2017-12-31"))
            pt2 = export.export(forecaster, Path(folder) / "forecast.pt2")
            aoti = export.export(forecaster, Path(folder) / "forecast.aoti.pt2", format="aoti")
            body = request_body(panel, arguments.rows)
            rows = [
                row for name, command in servers(pt2, aoti).items() for row in load_rows(name, command, body, arguments)
            ]
            lines += [f"| {len(symbols)} {row}" for row in sorted(rows, key=lambda row: int(row.split()[1]))]
    missing = (
        [] if importlib.util.find_spec("litserve") else ["LitServe is not installed (pip install litserve): no row."]
    )
    setting = (
        f"Instances of {arguments.rows} rows, {arguments.seconds:g} s each, one worker, clients on the same machine"
    )
    text = "\n".join([*lines, "", *missing, environment(setting)])
    replace_table(arguments.page, "load", text) if arguments.page else print(text)


def servers(pt2: Path, aoti: Path) -> dict[str, list[str]]:
    """Commands of all servers, which end with the port."""
    torchcommodity = ["-m", "torchcommodity", "serve"]
    commands = {
        "torchcommodity": [*torchcommodity, str(pt2), "--port"],
        "torchcommodity, AOTInductor": [*torchcommodity, str(aoti), "--trusted", "--port"],
        "FastAPI and uvicorn": [str(Path(__file__).with_name("serving_fastapi.py")), str(pt2)],
    }
    if importlib.util.find_spec("litserve"):
        commands["LitServe"] = [str(Path(__file__).with_name("serving_litserve.py")), str(pt2)]
    return {name: [sys.executable, *command] for name, command in commands.items()}


def load_rows(name: str, command: list[str], body: bytes, arguments: argparse.Namespace) -> list[str]:
    """Rows of the table for one server, with 1 client and with `--clients`."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    server, rows = Server(command, port), []
    asyncio.run(server.start())
    try:
        for clients in (1, arguments.clients):
            rows.append(f"| {clients} | {name} | " + asyncio.run(load(server, body, clients, arguments.seconds)))
            print(rows[-1], flush=True)
    finally:
        asyncio.run(server.stop())
    return rows


async def load(server: "Server", body: bytes, clients: int, seconds: float) -> str:
    """Requests per second, latencies and CPU time per request under load."""
    results = Results()
    for duration in (1.0, seconds):  # the first is the warm-up
        results, cpu, deadline = Results(), server.cpu_seconds(), time.monotonic() + duration
        await asyncio.gather(*(client(server.port, body, deadline, results) for _ in range(clients)))
    if set(results.outcomes) != {"200"}:
        sys.exit(f"{server.command}: expected only predictions; got {dict(results.outcomes)}")
    ordered, count = sorted(results.latencies), len(results.latencies)
    p50, p99 = (1000 * ordered[int(q * (count - 1))] for q in (0.5, 0.99))
    cpu_ms = 1000 * (server.cpu_seconds() - cpu) / count
    rate = count / (seconds + max(time.monotonic() - deadline, 0))
    return f"{rate:.0f} | {p50:.1f} | {p99:.1f} | {cpu_ms:.1f} |"


def request_body(panel: data.Panel, rows: int) -> bytes:
    prices = [[p if p == p else None for p in row] for row in panel.values.plain()[-rows:].tolist()]
    dates = list(map(str, panel.dates[-rows:]))
    return json.dumps({"instances": [{"prices": prices, "dates": dates}]}).encode()


async def measure(scenario: str, artifact: Path, body: bytes, arguments: argparse.Namespace) -> list[str]:
    """Run a scenario and print its outcomes; its row of the table."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    command = [sys.executable, "-m", "torchcommodity", "serve", str(artifact)]
    server = Server([*command, "--workers", str(arguments.workers), "--port"], port)
    results, load_before = Results(), os.getloadavg()[0]
    await server.start()
    async with health_checks(port, results.health_latencies):
        deadline = time.monotonic() + arguments.seconds
        clients = [asyncio.create_task(client(port, body, deadline, results)) for _ in range(arguments.clients)]
        if scenario == "restart":
            await server.restart_until(deadline, arguments.interval)
        elif scenario == "kill":
            await server.kill_worker_until(deadline, arguments.interval)
        await asyncio.gather(*clients)
    exit_code = await server.stop()
    print(
        f"{scenario}: {arguments.clients} clients, {arguments.seconds:g} s, {arguments.rows} rows x "
        f"{arguments.symbols} per instance, {len(body):,} bytes per request, {arguments.workers} worker(s), "
        f"{os.cpu_count()} cores, load average {load_before:.1f} before and {os.getloadavg()[0]:.1f} after"
    )
    for outcome, count in sorted(results.outcomes.items()):
        print(f"  {outcome:45} {count:8,}")
    rate = len(results.latencies) / arguments.seconds
    print(f"  predictions per second {rate:.1f}; ms {percentiles(results.latencies)}")
    print(f"  health check, ms {percentiles(results.health_latencies)}")
    print(f"  longest stop {server.longest_stop:.1f} s, exit code {exit_code}, {dict(server.events)}")
    lost = sum(
        count for outcome, count in results.outcomes.items() if outcome.startswith("LOST") or "incomplete" in outcome
    )
    latencies, health = sorted(results.latencies), sorted(results.health_latencies)
    times = [latencies[len(latencies) // 2], latencies[int(0.99 * len(latencies))], health[int(0.99 * len(health))]]
    counts = [results.outcomes["200"], results.outcomes["503"], lost]
    return [f"`{scenario}`", *(f"{count:,}" for count in counts), *(f"{1000 * time:.0f}" for time in times)]


def percentiles(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    levels = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0} if ordered else {}
    last = len(ordered) - 1
    return ", ".join(f"{name} {1000 * ordered[min(int(q * (last + 1)), last)]:.1f}" for name, q in levels.items())


async def client(port: int, body: bytes, deadline: float, results: Results) -> None:
    """Send requests one after the other until the deadline; retry after an error."""
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=CLIENT_TIMEOUT)) as session:
        while time.monotonic() < deadline:
            start = time.perf_counter()
            try:
                async with session.post(f"http://127.0.0.1:{port}/predict", data=body, headers=headers) as response:
                    content = await response.json()
                    complete = len(content["predictions"]) == 1 if response.status == 200 else "error" in content
                    results.outcomes[f"{response.status}{'' if complete else ' incomplete'}"] += 1
                    if response.status == 200:
                        results.latencies.append(time.perf_counter() - start)
                        continue
            except aiohttp.ClientConnectorError:
                results.outcomes["connection refused, nothing sent"] += 1
            except asyncio.TimeoutError:
                results.outcomes["LOST: no response"] += 1
            except (aiohttp.ClientError, ValueError) as error:
                results.outcomes[f"LOST: {type(error).__name__}: {error}"[:45]] += 1
            await asyncio.sleep(RETRY_SECONDS)


@asynccontextmanager
async def health_checks(port: int, latencies: list[float]) -> AsyncIterator[None]:
    """Time a health check ten times a second."""

    async def check() -> None:
        async with aiohttp.ClientSession() as session:
            while True:
                start = time.perf_counter()
                try:
                    async with session.get(f"http://127.0.0.1:{port}/health") as response:
                        await response.read()
                        latencies.append(time.perf_counter() - start)
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.1)

    task = asyncio.create_task(check())
    yield
    task.cancel()


class Server:
    """A server in a process of its own."""

    def __init__(self, command: list[str], port: int) -> None:
        self.command, self.port, self.longest_stop = [*command, str(port)], port, 0.0
        self.events: collections.Counter[str] = collections.Counter()

    async def start(self) -> None:
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        async with aiohttp.ClientSession() as session:
            while self.process.poll() is None:
                try:
                    async with session.get(f"http://127.0.0.1:{self.port}/health") as response:
                        if response.status == 200:
                            return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.2)
        sys.exit(f"the server exited with code {self.process.returncode}")

    def cpu_seconds(self) -> float:
        """CPU time of the server and all of its processes."""
        seconds = 0.0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = stat.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.process.pid:  # its session
                    seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return seconds

    async def stop(self) -> int:
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        exit_code = await asyncio.to_thread(self.process.wait, 60)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # LitServe leaves processes behind
        self.events[f"exit code {exit_code}"] += 1
        self.longest_stop = max(self.longest_stop, time.monotonic() - start)
        return exit_code

    async def restart_until(self, deadline: float, interval: float) -> None:
        while time.monotonic() + interval < deadline:
            await asyncio.sleep(interval)
            await self.stop()
            await self.start()

    async def kill_worker_until(self, deadline: float, interval: float) -> None:
        while time.monotonic() + interval < deadline:
            await asyncio.sleep(interval)
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            worker = next(pid for pid in children if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text())
            os.kill(int(worker), signal.SIGKILL)
            self.events["workers killed"] += 1


if __name__ == "__main__":
    main()
