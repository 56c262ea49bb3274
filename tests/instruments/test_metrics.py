"""What a service counts of itself is read as what a load adds to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary
from prometheus_client.exposition import start_http_server

from perflab.errors import StackError
from perflab.instruments.metrics import increments, totals, totals_in
from tests.support.answering import answering


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def port(registry: CollectorRegistry) -> Iterator[int]:
    server, thread = start_http_server(0, "127.0.0.1", registry)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_counters_histograms_and_summaries_are_told_as_what_was_added(
    registry: CollectorRegistry, port: int
) -> None:
    queries = Counter("orm_queries", "-", ["table"], registry=registry)
    waited = Histogram("pool_wait_seconds", "-", registry=registry)
    slept = Counter("slept_seconds", "-", registry=registry)
    sizes = Summary("answer_bytes", "-", registry=registry)
    Gauge("pool_in_use", "-", registry=registry).set(3)
    Counter("process_cpu_seconds", "-", registry=registry).inc()
    queries.labels("items").inc(5)
    before = totals(port, "/metrics")
    queries.labels("items").inc(20)
    queries.labels("users").inc(1)
    waited.observe(0.25)
    waited.observe(0.5)
    slept.inc(2)
    sizes.observe(100)
    grown = dict(increments(before, totals(port, "/metrics")))
    assert grown["orm_queries_total{table=items}"].number == 20
    assert grown["orm_queries_total{table=users}"].number == 1
    assert grown["pool_wait_seconds"] == (2, 0.75)
    assert grown["slept_seconds_total"].time_s == 2
    assert grown["answer_bytes_sum"].number == 100
    assert {"pool_in_use", "process_cpu_seconds_total"}.isdisjoint(grown)


def test_counts_of_another_process_are_left_out() -> None:
    text = "# TYPE asked_total counter\nasked_total {}\n# TYPE made_total counter\nmade_total 1\n"
    grown = dict(increments(totals_in(text.format(50)), totals_in(text.format(7))))
    assert [*grown] == ["made_total"]


def test_a_path_without_metrics_is_told() -> None:
    def page(_method: str, path: str, _body: bytes) -> tuple[int, str]:
        return 200 if path == "/page" else 404, "<html>a page</html>\n"

    with answering(page) as port:
        with pytest.raises(StackError, match="GET /metrics is answered with status 404, not 200"):
            totals(port, "/metrics")
        with pytest.raises(StackError, match="GET /page is answered with no text of"):
            totals(port, "/page")
    with pytest.raises(StackError, match=r"/metrics: .*refused"):
        totals(port, "/metrics")
