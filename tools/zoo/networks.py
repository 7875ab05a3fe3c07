"""The networks: one function each, `NETWORKS` lists them. Nothing heavy is imported before a function runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import nn

Sample = dict[str, np.ndarray]


@dataclass(frozen=True)
class Network:
    """A module with random weights and what feeds it.

    ``sample`` draws one batch-1 input: an array for every input by its name, in the order of the module's
    parameters. ``transformer`` and ``mixed`` are NNCF's model type and preset: with ``mixed`` signed activations
    get a zero point.
    """

    module: nn.Module
    sample: Callable[[np.random.Generator], Sample]
    transformer: bool = False
    mixed: bool = False


def smooth(rng: np.random.Generator, shape: tuple[int, ...], waves: int = 12) -> np.ndarray:
    """float32 noise [1, *shape] with the falling spectrum of photographs, about zero mean and unit deviation.

    Every leading index (a channel) shares the waves with its own weights; the other axes are spatial.
    """
    axes = np.meshgrid(*(np.linspace(0, 1, size) for size in shape[1:]), indexing="ij")
    frequency = rng.exponential(4, waves) + 0.5
    direction = rng.standard_normal((waves, len(axes)))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    phase = sum(np.multiply.outer(frequency * direction[:, i], axis) for i, axis in enumerate(axes))
    offset = rng.uniform(0, 2 * np.pi, (waves, *(1 for _ in axes)))
    field = np.cos(2 * np.pi * phase + offset)
    weights = (1 + 0.5 * rng.standard_normal((shape[0], waves))) / frequency
    signal = np.tensordot(weights, field, 1)
    signal += 0.05 * rng.standard_normal(signal.shape) + 0.3 * rng.standard_normal()
    return (signal / signal.std())[None].astype(np.float32)


def on_images(module: nn.Module, size: int, **kind: bool) -> Network:
    """``module`` on an image f32 [1, 3, size, size]."""
    return Network(module, lambda rng: {"image": smooth(rng, (3, size, size))}, **kind)


def on_tokens(module: nn.Module, length: int, vocabulary: int, **kind: bool) -> Network:
    """``module`` on token numbers i64 [1, length]."""
    return Network(module, lambda rng: {"tokens": rng.integers(vocabulary, size=(1, length))}, **kind)


def resnet50() -> Network:
    """ResNet-50: bottlenecks with residual Adds."""
    from transformers import ResNetConfig, ResNetForImageClassification

    return on_images(ResNetForImageClassification(ResNetConfig(num_labels=1000)), 224)


def mobilenet_v2() -> Network:
    """MobileNetV2 1.0: depthwise convolutions, ReLU6, linear bottlenecks."""
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    module = MobileNetV2ForImageClassification(MobileNetV2Config(num_labels=1000, tf_padding=False))
    return on_images(module, 224, mixed=True)


def bert() -> Network:
    """BERT, 4 layers of width 768, 128 tokens, attention mask."""
    from transformers import BertConfig, BertModel

    vocabulary = 2000
    config = BertConfig(vocab_size=vocabulary, num_hidden_layers=4, attn_implementation="eager")

    def sample(rng: np.random.Generator) -> Sample:
        tokens = rng.integers(vocabulary, size=(1, 128))
        return {
            "input_ids": tokens,
            "attention_mask": (np.arange(128)[None] < rng.integers(64, 129)).astype(np.int64),
        }

    return Network(BertModel(config), sample, transformer=True)


def vit() -> Network:
    """ViT-B/16, 4 layers, attention as MatMul and Softmax."""
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(num_hidden_layers=4, num_labels=1000, attn_implementation="eager")
    return on_images(ViTForImageClassification(config), 224, transformer=True)


NETWORKS: dict[str, Callable[[], Network]] = {
    network.__name__: network
    for network in (
        resnet50,
        mobilenet_v2,
        bert,
        vit,
    )
}
