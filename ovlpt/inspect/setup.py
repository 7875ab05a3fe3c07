"""What a worker needs to compile the networks of a run: models and settings that travel, and what makes two of them equal."""

from __future__ import annotations

from dataclasses import dataclass

from ovlpt.device.loading import read_float, read_quantized
from ovlpt.fleet.models import Settings, digest_of
from ovlpt.fleet.parcel import Parcel
from ovlpt.openvino_api import Core, Model


@dataclass(frozen=True)
class Setup:
    """``threads``: of an inference on a CPU, None for the plugin's choice; see `Runs`."""

    model: Parcel
    float_model: Parcel | None
    device: str
    config: Settings
    threads: int | None

    @property
    def key(self) -> tuple[object, ...]:
        """Equal where the compiled networks are."""
        return tuple(self.described().values())

    def described(self) -> dict[str, object]:
        """What is compiled, for the head of a journal."""
        return {
            "model": self.model.digest,
            "float model": self.float_model and self.float_model.digest,
            "device": self.device,
            "settings": digest_of(self.config),
            "threads": self.threads,
        }

    def models(self, core: Core) -> tuple[Model, Model | None]:
        """The quantized model and the one before quantization, read here."""
        quantized = read_quantized(self.model.here()[0], core)
        return quantized, None if self.float_model is None else read_float(self.float_model.here()[0], core)
