"""Prometheus metrics of the server."""

import os
import platform
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.multiprocess import MultiProcessCollector

import torchcommodity
from torchcommodity.serve._request_error import CAUSES, RequestError
from torchcommodity.serve.http._messages import PriceWindow, ServedArtifact
from torchcommodity.serve.http._response import artifact_info

METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # makes prometheus_client count in files, which front processes share
LATENCY_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)  # seconds
ARTIFACT_BUCKETS = (0.001, 0.002, *LATENCY_BUCKETS)
BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64)  # instances
DAY = 86_400
AGE_BUCKETS = tuple(days * DAY for days in (1, 2, 4, 7, 31, 366))  # seconds


class Metrics:
    """Metrics of one server, in a registry of its own."""

    def __init__(self, metadata: ServedArtifact) -> None:
        self.registry = CollectorRegistry()
        options: Any = {"namespace": "torchcommodity", "registry": self.registry}
        self.requests = Counter("requests", "HTTP requests by route and status", ["route", "status"], **options)
        self.latency = Histogram(
            "request_seconds",
            "Seconds from the start of an HTTP request to the end of its response",
            ["route"],
            buckets=LATENCY_BUCKETS,
            **options,
        )
        self.in_flight = Gauge(
            "requests_in_flight", "HTTP requests in progress", multiprocess_mode="livesum", **options
        )
        self.failures = Counter("predict_failures", "Predict requests that failed, by cause", ["cause"], **options)
        for cause in (*CAUSES.values(), "loading", "no_worker", "worker_died", "artifact"):
            self.failures.labels(cause)  # so that the first failure is an increase from 0
        self.wrong_tokens = Counter("wrong_tokens", "HTTP requests with a missing or wrong token", **options)
        self.instances = Counter("instances", "Instances of predict requests", **options)
        self.batch = Histogram(
            "batch_instances", "Instances per call of the artifact", buckets=BATCH_BUCKETS, **options
        )
        self.queue_seconds = Histogram(
            "queue_seconds", "Seconds that an instance waits for an idle worker", buckets=ARTIFACT_BUCKETS, **options
        )
        self.artifact_seconds = Histogram(
            "artifact_seconds",
            "Seconds of a call of the artifact in a worker, with the transfer",
            buckets=ARTIFACT_BUCKETS,
            **options,
        )
        self.row_age = Histogram(
            "instance_age_seconds",
            "Seconds from the last date of an instance, at 00:00 UTC, to its request",
            buckets=AGE_BUCKETS,
            **options,
        )
        self.price_time = Gauge(
            "dashboard_price_timestamp_seconds",
            "Date of a symbol's last price, at 00:00 UTC, when the dashboard was last made",
            ["symbol"],
            multiprocess_mode="mostrecent",
            **options,
        )
        self.workers_ready = Gauge(
            "workers_ready", "Worker processes that have loaded the artifact", multiprocess_mode="livesum", **options
        )
        self.spares_ready = Gauge(
            "spares_ready", "Spare processes that have loaded the artifact", multiprocess_mode="livesum", **options
        )
        self.worker_memory = Gauge(
            "worker_resident_memory_bytes",
            "Memory of a worker process; spares come last",
            ["worker"],
            multiprocess_mode="liveall",
            **options,
        )
        self.worker_deaths = Counter("worker_deaths", "Worker processes that died", **options)
        self.instances_waiting = Gauge(
            "instances_waiting", "Instances waiting for an idle worker", multiprocess_mode="livesum", **options
        )
        artifact = Info("artifact", "Artifact that the server predicts with", **options)
        artifact.info(artifact_info(metadata) | {"symbols": ",".join(metadata.symbols)})
        build = Info("build", "Versions of the server", **options)
        build.info(
            {"version": torchcommodity.__version__, "torch": version("torch"), "python": platform.python_version()}
        )
        self._constant = (artifact, build)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)

    def collect(self) -> CollectorRegistry:
        """All metrics; those of several front processes are added up, without the metrics of single processes."""
        if METRICS_FOLDER not in os.environ:
            return self.registry
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        for metric in self._constant:
            registry.register(metric)
        return registry

    @contextmanager
    def count_failure(self) -> Iterator[None]:
        """Count a predict request that fails inside the block."""
        try:
            yield
        except RequestError as error:
            self.failures.labels(error.cause).inc()
            raise
        except Exception:
            self.failures.labels("internal").inc()
            raise

    def observe_instances(self, windows: Iterable[PriceWindow]) -> None:
        """Count the instances of a request, and observe the ages of their last rows."""
        now = time.time()
        for window in windows:
            self.instances.inc()
            self.row_age.observe(now - float(window.days[-1]) * DAY)

    def observe_document(self, document: Mapping[str, Any]) -> None:
        """Read the dates of the last prices from a dashboard document."""
        for symbol in document.get("symbols", ()):
            if symbol["last_date"]:
                day = datetime.fromisoformat(symbol["last_date"]).replace(tzinfo=timezone.utc)
                self.price_time.labels(symbol["symbol"]).set(day.timestamp())

    def observe_batch(self, queued: Iterable[float]) -> None:
        """Observe a batch whose instances were queued at these times of `time.perf_counter`."""
        waits = [time.perf_counter() - start for start in queued]
        self.batch.observe(len(waits))
        for seconds in waits:
            self.queue_seconds.observe(seconds)
