"""Prometheus metrics of the server."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from torchcommodity.export import Metadata
from torchcommodity.serve.http._pool import Pool
from torchcommodity.serve.http._response import artifact_info

LATENCY_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)  # seconds
BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64)  # instances


class Metrics:
    """Metrics of one server, in a registry of its own."""

    def __init__(self, metadata: Metadata) -> None:
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
        self.in_flight = Gauge("requests_in_flight", "HTTP requests in progress", **options)
        self.batch = Histogram(
            "batch_instances", "Instances per call of the artifact", buckets=BATCH_BUCKETS, **options
        )
        self.worker_deaths = Gauge("worker_deaths", "Worker processes that died and were replaced", **options)
        self.workers_ready = Gauge("workers_ready", "Worker processes that have loaded the artifact", **options)
        self.instances_waiting = Gauge("instances_waiting", "Instances waiting for an idle worker", **options)
        info = Info("artifact", "Artifact that the server predicts with", **options)
        info.info(artifact_info(metadata) | {"symbols": ",".join(metadata.symbols)})

    def observe_pool(self, pool: Pool) -> None:
        """Read the gauges of a worker pool whenever the metrics are requested."""
        self.worker_deaths.set_function(lambda: pool.deaths)
        self.workers_ready.set_function(lambda: len(pool.ready))
        self.instances_waiting.set_function(lambda: len(pool.queue))
