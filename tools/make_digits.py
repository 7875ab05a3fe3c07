"""Trains, quantizes and writes the model bundled in ``ovlpt/data``: ``python -m tools.make_digits``.

A small residual CNN on scikit-learn's handwritten digits; one to two minutes on two cores.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import nncf
import numpy as np
import openvino as ov
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from ovlpt import data
from tools.ir import save_ir

HELD_OUT = 500
EPOCHS = 25
BATCH = 32


def conv(inputs: int, outputs: int, kernel: int, groups: int = 1) -> nn.Sequential:
    """Convolution and BatchNorm, same spatial size."""
    convolution = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))


class Residual(nn.Module):
    """``x + body(x)``; with ``relu`` as in ResNet, without as in MobileNetV2's linear bottleneck."""

    def __init__(self, *body: nn.Module, relu: bool):
        super().__init__()
        self.body = nn.Sequential(*body)
        self.last = nn.ReLU() if relu else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.last(x + self.body(x))


def depthwise(channels: int) -> nn.Sequential:
    return conv(channels, channels, 3, groups=channels)


class Normalize(nn.Module):
    """Images of [0, 1] to zero mean and unit deviation, so that the input's quantization has a zero point."""

    def __init__(self, images: Tensor):
        super().__init__()
        self.mean, self.std = float(images.mean()), float(images.std())

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std


def digits_network(images: Tensor, narrow: int = 24, wide: int = 48) -> nn.Sequential:
    """[N, 1, 32, 32] → logits [N, 10]."""
    return nn.Sequential(
        Normalize(images),
        *(conv(1, narrow, 3), nn.ReLU()),
        Residual(conv(narrow, narrow, 3), nn.ReLU(), conv(narrow, narrow, 3), relu=True),
        nn.MaxPool2d(2),
        *(depthwise(narrow), nn.ReLU(), conv(narrow, wide, 1), nn.ReLU()),
        Residual(
            conv(wide, 2 * wide, 1),
            nn.ReLU(),
            depthwise(2 * wide),
            nn.ReLU(),
            conv(2 * wide, wide, 1),
            relu=False,
        ),
        Residual(conv(wide, wide, 3), nn.ReLU(), conv(wide, wide, 3), relu=True),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(wide, 10),
    )


def train(network: nn.Module, images: Tensor, labels: Tensor) -> None:
    batches = -(-len(images) // BATCH)
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=EPOCHS * batches)
    network.train()
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(images)).split(BATCH):
            shift = torch.randint(-3, 4, (2,)).tolist()
            loss = nn.functional.cross_entropy(network(images[chosen].roll(shift, (2, 3))), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    network.eval()


def accuracy(logits: Callable[[np.ndarray], np.ndarray], images: np.ndarray, labels: np.ndarray) -> float:
    """Share of images [N, 1, H, W], given one at a time, whose largest logit is the label's."""
    return float(np.mean([logits(image[None]).argmax() == label for image, label in zip(images, labels, strict=True)]))


def main() -> int:
    torch.manual_seed(0)
    pixels, labels = load_digits(return_X_y=True)
    pixels = pixels.reshape(-1, 8, 8).astype(np.uint8)
    pixels, held_pixels, labels, held_labels = train_test_split(
        pixels, labels, test_size=HELD_OUT, stratify=labels, random_state=0
    )
    folder = Path(data.__file__).parent
    np.savez_compressed(folder / "digits_heldout.npz", pixels=held_pixels, labels=held_labels.astype(np.uint8))

    images = data.enlarge(pixels)
    network = digits_network(torch.from_numpy(images))
    train(network, torch.from_numpy(images), torch.from_numpy(labels))

    example = images[:1]
    model = ov.convert_model(network, example_input=torch.from_numpy(example), input=[example.shape])
    model.inputs[0].tensor.set_names({"image"})
    model.outputs[0].tensor.set_names({"logits"})
    calibration = nncf.Dataset(images[:300], lambda image: image[None])
    quantized = nncf.quantize(model, calibration, preset=nncf.QuantizationPreset.MIXED, subset_size=300)
    save_ir(model, data.digits_float(), compress_to_fp16=True)
    save_ir(quantized, data.digits())

    precise = {"INFERENCE_PRECISION_HINT": "f32"}
    for path in (data.digits_float(), data.digits()):
        compiled = ov.compile_model(path, "CPU", precise)
        score = accuracy(lambda image, run=compiled: run(image)[0], *data.heldout())
        print(f"{path.name}: {score:.3f} of {HELD_OUT} held-out images")
    return 0


if __name__ == "__main__":
    sys.exit(main())
