"""Pages on several networks: an index of a fleet, and one network before and after a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ovlpt.inspect.report.charts import bars
from ovlpt.inspect.report.facts import Report
from ovlpt.inspect.report.layers import Kind, Layer
from ovlpt.inspect.report.page import templates

CHANGED = 60  # layers that a comparison lists


@dataclass(frozen=True, slots=True)
class Network:
    """One line of an index, of plain values. ``page``: its file, in the folder of the index; ``error``: why there is none.

    ``cause``, ``verdict``: of the report. ``latency``: milliseconds; it, ``float_precision`` and ``speed`` are None where
    times mean nothing. ``worst``: type and name of the slowest layer outside int8.
    """

    model: str
    page: str | None = None
    error: str | None = None
    device: str = ""
    openvino: str = ""
    cause: str | None = None
    verdict: str | None = None
    int8_share: float | None = None
    latency: float | None = None
    float_precision: str | None = None
    speed: float | None = None
    worst: tuple[str, str] | None = None

    @classmethod
    def of(cls, report: Report, page: str | None = None) -> Network:
        """What the index says of a report."""
        timed, slowest = report.facts.timed, report.bottlenecks[:1]
        worst = [report.layers[each.layers[0]] for each in slowest]
        return cls(
            report.model,
            page,
            device=report.device,
            openvino=report.openvino,
            cause=str(report.verdict.cause),
            verdict=report.verdict.text,
            int8_share=report.facts.int8_work_share,
            latency=report.latency if timed else None,
            float_precision=report.facts.float_precision if timed else None,
            speed=report.facts.speed if timed else None,
            worst=next(((layer.type, layer.name) for layer in worst), None),
        )

    @property
    def link(self) -> str | None:
        return quote(self.page) if self.page else None

    @property
    def rank(self) -> float:
        """Its place in an index: what has no report first, then by speed."""
        return 0.0 if self.verdict is None else self.speed or 1.0

    def to_json(self) -> dict[str, object]:
        """Plain values for a file."""
        return {
            "model": self.model,
            "page": self.page,
            "error": self.error,
            "verdict": {"cause": self.cause, "text": self.verdict} if self.verdict is not None else None,
            "int8_multiply_accumulate_share": self.int8_share,
            "latency_ms": self.latency,
            "float_precision": self.float_precision,
            "speed": self.speed,
            "worst_layer": self.worst[1] if self.worst else None,
        }


def pages_of(models: Sequence[str]) -> list[str]:
    """One file name for each model, all different in small letters, too, and none that of the index."""
    taken, found = {"index.html"}, []
    for model in models:
        stem, number = Path(model).stem or "model", 1
        name = f"{stem}.html"
        while name.casefold() in taken:
            number += 1
            name = f"{stem}-{number}.html"
        taken.add(name.casefold())
        found.append(name)
    return found


def names_of(models: Sequence[str]) -> list[str]:
    """Of each path the end that tells it from the others: many tools call every model alike, in a folder of its own."""
    paths = [Path(model).parts for model in models]

    def end(path: tuple[str, ...]) -> str:
        others = [each for each in paths if each != path]
        sizes = (size for size in range(1, len(path)) if all(each[-size:] != path[-size:] for each in others))
        return str(Path(*path[-next(sizes, len(path)) :]))

    return [end(path) for path in paths]


def index_page(networks: Sequence[Network]) -> str:
    """Raises `InputError` without the packages of the extra ``report``."""
    known = [each for each in networks if each.verdict is not None]
    named = zip(names_of([each.model for each in networks]), networks, strict=True)
    return (
        templates()
        .get_template("index.html")
        .render(
            title=f"{len(networks)} networks",
            networks=sorted(named, key=lambda each: each[1].rank),
            device=", ".join(dict.fromkeys(each.device for each in known)),
            openvino=known[0].openvino if known else "",
        )
    )


@dataclass(frozen=True, slots=True)
class Pair:
    """A layer before and after, None where there is none of its name."""

    name: str
    before: Layer | None
    after: Layer | None

    @property
    def gain(self) -> float:
        """Milliseconds that the change takes off."""
        return (self.before.milliseconds if self.before else 0.0) - (self.after.milliseconds if self.after else 0.0)


def pairs(before: Report, after: Report) -> list[Pair]:
    """The layers of both by the name of their operation with weights, or else their own; those whose time changed most
    first.
    """
    old, new = ({(*layer.weighted, layer.name)[0]: layer for layer in each.executed} for each in (before, after))
    made = [Pair(name, old.get(name), new.get(name)) for name in dict.fromkeys((*old, *new))]
    return sorted(made, key=lambda pair: -abs(pair.gain))


def comparison_page(before: Report, after: Report) -> str:
    """Raises `InputError` without the packages of the extra ``report``."""
    names = names_of((before.model, after.model))
    found = pairs(before, after)
    types: dict[str, list[float]] = {}
    for at, each in enumerate((before, after)):
        for bar in bars(each.executed):
            types.setdefault(bar.type, [0.0, 0.0])[at] = bar.milliseconds
    return (
        templates()
        .get_template("comparison.html")
        .render(
            title=f"{names[0]} → {names[1]}",
            names=names,
            both=(before, after),
            timed=before.facts.timed,
            types=sorted(types.items(), key=lambda item: -max(item[1])),
            longest=max((max(times) for times in types.values()), default=0.0) or 1.0,
            pairs=found[:CHANGED],
            hidden=max(len(found) - CHANGED, 0),
            Kind=Kind,
        )
    )
