"""Counters and histograms in Prometheus's text format. No label holds an id, a name or a text of a user."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Labels = tuple[tuple[str, str], ...]


class Histogram:
    """How often something took how long."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


class Metrics:
    """What the server has done since it started."""

    def __init__(self) -> None:
        self._calls: defaultdict[Labels, int] = defaultdict(int)
        self._requests: defaultdict[Labels, int] = defaultdict(int)
        self._durations: defaultdict[Labels, Histogram] = defaultdict(Histogram)
        self.calls_waiting = 0

    def observe_call(self, surface: str, tool: str, outcome: str, seconds: float) -> None:
        """Count a tool call by what came of it."""
        labels = (("surface", surface), ("tool", tool))
        self._calls[(*labels, ("outcome", outcome))] += 1
        self._durations[labels].observe(seconds)

    def observe_request(self, route: str, status: int) -> None:
        """Count a request by its route and status."""
        self._requests[(("route", route), ("status", str(status)))] += 1

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Return everything, with gauges that are read now: name → (help, value)."""
        return "".join(f"{line}\n" for line in self._lines(gauges))

    def _lines(self, gauges: Mapping[str, tuple[str, float]]) -> Iterator[str]:
        yield from _counter("interlock_calls_total", "Tool calls by outcome.", self._calls)
        yield from _counter("interlock_http_requests_total", "HTTP requests by status.", self._requests)
        yield from _head("interlock_call_seconds", "Duration of tool calls.", "histogram")
        for labels, histogram in self._durations.items():
            total = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), histogram.counts, strict=True):
                total += count
                yield f"interlock_call_seconds_bucket{_labelled((*labels, ('le', bound)))} {total}"
            yield f"interlock_call_seconds_sum{_labelled(labels)} {histogram.seconds:.6f}"
            yield f"interlock_call_seconds_count{_labelled(labels)} {total}"
        for name, (text, value) in gauges.items():
            yield from _head(name, text, "gauge")
            yield f"{name} {value:g}"


def _counter(name: str, text: str, counts: Mapping[Labels, int]) -> Iterator[str]:
    yield from _head(name, text, "counter")
    for labels, count in counts.items():
        yield f"{name}{_labelled(labels)} {count}"


def _head(name: str, text: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _labelled(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels) + "}" if labels else ""
