"""Counts among the metrics of a Dask scheduler.

A scheduler need not have this package: it is sent a text that needs prometheus_client alone.
"""

from __future__ import annotations

from typing import Any

from .counts import FAMILIES, PREFIX, Sample

# What runs in the scheduler's process. Counters are told as what was added since the last time, so that they rise over
# all commands that the scheduler has seen; gauges as they are.
_THERE = """
import sys, types
import prometheus_client
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

class Collector:
    def __init__(self):
        self.values = {}
    def update(self, corpus, added, now):
        own = self.values.setdefault(corpus, {})
        for sample, amount in added:
            own[sample] = own.get(sample, 0.0) + amount
        own.update(now)
    def collect(self):
        for name, kind, text, label in FAMILIES:
            made = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}[kind]
            family = made(name, text, labels=["corpus", label] if label else ["corpus"])
            for corpus, own in list(self.values.items()):
                for (of, value_of_label), value in list(own.items()):
                    if PREFIX + "_" + of == name:
                        family.add_metric([corpus, value_of_label] if label else [corpus], value)
            yield family

name = PREFIX + "_metrics"
if name not in sys.modules:
    module = types.ModuleType(name)
    module.collector = Collector()
    prometheus_client.REGISTRY.register(module.collector)
    sys.modules[name] = module
collector = sys.modules[name].collector
"""


# Made here, so that it travels as it is: a scheduler could not import it.
_BY_VALUE = eval(
    "lambda dask_scheduler: __import__('prometheus_client') and any("
    "'/metrics' in rule.matcher.regex.pattern "
    "for app in [dask_scheduler.http_application, *dask_scheduler.http_application.applications] "
    "for rule in app.wildcard_router.rules if hasattr(rule.matcher, 'regex'))",
    {"__name__": "__main__"},
)


class Shown:
    """The counts of one command at a scheduler.

    Parameters
    ----------
    client
        Client of the cluster.
    corpus
        Value of the label ``corpus``.
    """

    def __init__(self, client: Any, corpus: str) -> None:
        self._client = client
        self._corpus = corpus
        self._told: dict[Sample, float] = {}

    def check(self) -> None:
        """Begin.

        Raises
        ------
        RuntimeError
            The scheduler has no prometheus_client, or serves no pages.
        """
        try:
            shown = self._client.run_on_scheduler(_BY_VALUE)
        except ImportError:
            raise RuntimeError(
                "metrics: the scheduler must have prometheus_client; it was not found there. Install it with "
                "pip install prometheus_client, or take --metrics-file."
            ) from None
        if not shown:
            raise RuntimeError(
                "metrics: the scheduler must serve /metrics; it serves no pages. Add --dashboard where this command "
                "starts it, or take --metrics-file."
            )

    def update(self, values: dict[Sample, float]) -> None:
        """Tell the scheduler what has been counted since the last time."""
        counters = {family.name for family in FAMILIES if family.kind == "counter"}
        added = [
            (sample, value - self._told.get(sample, 0.0)) for sample, value in values.items() if sample[0] in counters
        ]
        now = {sample: value for sample, value in values.items() if sample[0] not in counters}
        self._client.run_on_scheduler(eval, _call(self._corpus, added, now))
        self._told = dict(values)


def _call(corpus: str, added: list[tuple[Sample, float]], now: dict[Sample, float]) -> str:
    """An expression that does it in the scheduler's process."""
    families = [(f"{PREFIX}_{family.name}", *family[1:]) for family in FAMILIES]
    space = {"PREFIX": PREFIX, "FAMILIES": families}
    return f"(exec({_THERE!r}, space := {space!r}), space['collector'].update(*{(corpus, added, now)!r}))[1]"
