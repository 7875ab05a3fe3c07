"""The algebra of FakeQuantize (numpy, no graph)."""

from ovlpt.fake_quantize.definition import fake_quantize

__all__ = ["fake_quantize"]
