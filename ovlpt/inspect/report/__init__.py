"""The report on one model: what ran in int8, what did not and why, and what it cost."""

from ovlpt.inspect.report.facts import Report, report

__all__ = ["Report", "report"]
