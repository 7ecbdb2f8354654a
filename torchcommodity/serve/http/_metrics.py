"""What the server counts, for Prometheus."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from torchcommodity.export import Metadata
from torchcommodity.serve.http._pool import Pool
from torchcommodity.serve.http._response import metadata

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
SIZES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """The numbers of one server, in a registry of its own."""

    def __init__(self, about: Metadata) -> None:
        self.registry = CollectorRegistry()
        kept: Any = {"namespace": "torchcommodity", "registry": self.registry}
        self.requests = Counter("requests", "answered, by route and status", ["route", "status"], **kept)
        self.latency = Histogram(
            "request_seconds", "from the head of a request to the end of its answer", ["route"], buckets=SECONDS, **kept
        )
        self.in_flight = Gauge("requests_in_flight", "read, waiting or computed now", **kept)
        self.batch = Histogram("batch_instances", "in one call of the artifact", buckets=SIZES, **kept)
        self.deaths = Gauge("worker_deaths", "workers that died and were replaced", **kept)
        self.ready = Gauge("workers_ready", "that have loaded the artifact", **kept)
        self.waiting = Gauge("instances_waiting", "for a free worker", **kept)
        Info("artifact", "that is served", **kept).info(metadata(about) | {"symbols": ",".join(about.symbols)})

    def watch(self, pool: Pool) -> None:
        """Read the pool's numbers when they are asked for."""
        self.deaths.set_function(lambda: pool.deaths)
        self.ready.set_function(lambda: len(pool.ready))
        self.waiting.set_function(lambda: len(pool.queue))
