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
    """One line of an index. ``page``: its file, in the folder of the index; ``error``: why there is none."""

    model: str
    page: str | None = None
    report: Report | None = None
    error: str | None = None

    @property
    def link(self) -> str | None:
        return quote(self.page) if self.page else None

    @property
    def worst(self) -> Layer | None:
        """The slowest layer outside int8."""
        found = self.report.bottlenecks if self.report else ()
        return self.report.layers[found[0].layers[0]] if found else None

    def to_json(self) -> dict[str, object]:
        facts = self.report.facts if self.report else None
        timed = facts is not None and facts.timed
        return {
            "model": self.model,
            "page": self.page,
            "error": self.error,
            "verdict": self.report.verdict.to_json() if self.report else None,
            "int8_multiply_accumulate_share": facts.int8_work_share if facts else None,
            "latency_ms": self.report.latency if timed else None,
            "float_precision": facts.float_precision if timed else None,
            "speed": facts.speed if timed else None,
            "worst_layer": self.worst.name if self.worst else None,
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


def index_page(networks: Sequence[Network]) -> str:
    """Raises `InputError` without the packages of the extra ``report``."""
    known = [each for each in networks if each.report]
    return (
        templates()
        .get_template("index.html")
        .render(
            title=f"{len(networks)} networks",
            networks=sorted(networks, key=lambda each: each.report.facts.speed if each.report else 0.0),
            device=known[0].report.device if known else "",
            openvino=known[0].report.openvino if known else "",
            Path=Path,
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
    names = [Path(each.model).name for each in (before, after)]
    if names[0] == names[1]:
        names = [before.model, after.model]
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
