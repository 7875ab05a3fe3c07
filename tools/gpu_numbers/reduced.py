"""Whole networks of the zoo, reduced so that a virtual GPU executes them in a minute, to files for ``--model``.

    python -m tools.gpu_numbers.reduced DIR            # resnet18, mobilenet_v2, bert, lstm_tagger

Needs the extra ``zoo``.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from tools.zoo.networks import VOCABULARY, Network, on_images
from tools.zoo.torchvision_operations import declare

SIZE = 64  # of images


def mobilenet_v2() -> Network:
    """Half as wide."""
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    config = MobileNetV2Config(num_labels=100, depth_multiplier=0.5, tf_padding=False)
    return on_images(MobileNetV2ForImageClassification(config), SIZE, mixed=True)


def bert() -> Network:
    """2 layers of width 128, 32 tokens."""
    from transformers import BertConfig, BertModel

    sizes = {"num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 4, "intermediate_size": 512}
    module = BertModel(BertConfig(vocab_size=VOCABULARY, attn_implementation="eager", **sizes))
    return Network(module, {"input_ids": (1, 32), "attention_mask": (1, 32)}, transformer=True)


def lstm_tagger() -> Network:
    """20 frames of 40 features, width 64."""
    from tools.zoo.modules import Tagger

    return Network(Tagger(40, 64, 8), {"frames": (1, 20, 40), "hidden": (2, 1, 64), "cell": (2, 1, 64)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")  # tracing warns of shapes that become constants, which is wanted here
    declare()
    from tools.zoo import build, onnx_networks

    print(onnx_networks.build("resnet18", onnx_networks.SETTINGS["resnet18_qdq"], folder, size=SIZE))
    for make in (mobilenet_v2, bert, lstm_tagger):
        print(build.build(make.__name__, make, folder))


if __name__ == "__main__":
    main()
