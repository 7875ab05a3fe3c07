"""What `compare` measures on some samples: sums, which merge in any order with those of other samples."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ovlpt.inspect.layer_errors import LayerTotals
from ovlpt.inspect.noise import Noise

_Noises = defaultdict[str, Noise]


@dataclass
class Totals:
    """Sums over samples. ``labelled``: answers that have a label; ``right``: of those, by run, the right ones.

    ``skipped``: a sentence for each file that could not be used. ``about``: facts that are equal for all samples.
    """

    samples: int = 0
    layer_samples: int = 0
    answers: int = 0
    labelled: int = 0
    right: defaultdict[str, int] = field(default_factory=partial(defaultdict, int))
    outputs: defaultdict[str, _Noises] = field(default_factory=partial(defaultdict, partial(defaultdict, Noise)))
    layers: list[LayerTotals] = field(default_factory=list)
    disturbance: float = 0.0
    skipped: list[str] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)

    def merge(self, other: Totals) -> None:
        """Add what was measured on other samples."""
        for name in ("samples", "layer_samples", "answers", "labelled"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for run, count in other.right.items():
            self.right[run] += count
        for error, noises in other.outputs.items():
            for output, noise in noises.items():
                self.outputs[error][output].merge(noise)
        if not self.layers:
            self.layers = other.layers
        else:
            for mine, theirs in zip(self.layers, other.layers, strict=bool(other.layers)):
                mine.merge(theirs)
        self.disturbance = max(self.disturbance, other.disturbance)
        self.skipped += other.skipped
        self.about = self.about or other.about

    def to_plain(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "right": dict(self.right),
            "outputs": {error: _plain(noises) for error, noises in self.outputs.items()},
            "layers": [
                [each.name, each.type, list(each.operations), _plain(each.local), _plain(each.cumulative)]
                for each in self.layers
            ],
        }

    @classmethod
    def from_plain(cls, plain: Any) -> Totals:
        """From what `to_plain` gave."""
        made = cls(**{name: plain[name] for name in _PLAIN})
        made.right.update(plain["right"])
        made.outputs.update((error, _noises(noises)) for error, noises in plain["outputs"].items())
        made.layers = [
            LayerTotals(name, kind, tuple(operations), _noises(local), _noises(cumulative))
            for name, kind, operations, local, cumulative in plain["layers"]
        ]
        return made


_PLAIN = ("samples", "layer_samples", "answers", "labelled", "disturbance", "skipped", "about")


def _plain(noises: _Noises) -> dict[str, list]:
    return {name: noise.to_plain() for name, noise in noises.items()}


def _noises(plain: dict[str, list]) -> _Noises:
    return defaultdict(Noise, {name: Noise.from_plain(noise) for name, noise in plain.items()})
