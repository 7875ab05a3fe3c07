"""What happened to each operation, or why nothing did; and the one way to refuse a transformation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NoReturn

from ovlpt.display import html_table, to_frame
from ovlpt.errors import InputError as InputError
from ovlpt.errors import OvlptError as OvlptError
from ovlpt.reasons import ROWS


@dataclass(frozen=True, slots=True)
class Reason:
    """A fact in the present tense: ``code`` for programs, one of `ovlpt.reasons`, ``text`` for people.

    Raises ValueError for an unknown code.
    """

    code: str
    text: str

    def __post_init__(self) -> None:
        if self.code not in ROWS:
            raise ValueError(
                f'"{self.code}" is not a reason that ovlpt.reasons knows; add it there (ovlpt.reasons.add)'
            )

    def __str__(self) -> str:
        return self.text


class Rejected(OvlptError):
    """Raised where a condition of a transformation does not hold; the node stays as it is."""

    def __init__(self, reason: Reason):
        super().__init__(reason.text)
        self.reason = reason


def reject(code: str, text: str) -> NoReturn:
    """Always raise `Rejected`."""
    raise Rejected(Reason(code, text))


def reject_unless(condition: object, code: str, text: str) -> None:
    """Raise `Rejected` with ``Reason(code, text)`` unless ``condition`` is true."""
    if not condition:
        raise Rejected(Reason(code, text))


class Outcome(StrEnum):
    """What a transformation did with a node."""

    TRANSFORMED = "transformed"
    REJECTED = "rejected"
    DISABLED = "disabled"
    RESTRICTED = "restricted"
    UNSUPPORTED = "unsupported"
    LOWERED = "lowered"  # changed for a plugin, which would do what the reason says


@dataclass(frozen=True, slots=True)
class Event:
    """One transformation met one node."""

    outcome: Outcome
    transformation: str
    operation: str
    node: str
    reason: Reason | None = None


@dataclass(slots=True)
class Trace:
    """The events of one run, in order. The caller owns it."""

    events: list[Event] = field(default_factory=list)

    def add(
        self, outcome: Outcome, transformation: str, operation: str, node: str, reason: Reason | None = None
    ) -> None:
        self.events.append(Event(outcome, transformation, operation, node, reason))

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def of(self, node: str) -> list[Event]:
        """The events of the node with this friendly name."""
        return [event for event in self.events if event.node == node]

    def summary(self) -> dict[tuple[str, str], int]:
        """How often each (transformation, outcome) occurred."""
        return dict(Counter((event.transformation, str(event.outcome)) for event in self.events))

    def to_frame(self):
        """The events as a pandas DataFrame. Raises `InputError` without pandas."""
        return to_frame(
            ("outcome", "transformation", "operation", "node", "code", "reason"),
            [
                (str(event.outcome), event.transformation, event.operation, event.node)
                + ((event.reason.code, event.reason.text) if event.reason else ("", ""))
                for event in self.events
            ],
        )

    def _repr_html_(self) -> str:
        rows = [(*key, count) for key, count in sorted(self.summary().items())]
        return html_table(("transformation", "outcome", "times"), rows, f"{len(self)} events")
