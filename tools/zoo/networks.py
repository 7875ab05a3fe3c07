"""The networks: one function each, `NETWORKS` lists them. A function imports what it needs when it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tools.zoo.signals import VOCABULARY

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Network:
    """A module with random weights, and the shapes of what feeds it (`tools.zoo.signals.draw`): of every input by its
    name, in the order of the module's parameters.

    ``transformer`` and ``mixed`` are NNCF's model type and preset: with ``mixed`` signed
    activations get a zero point. Along ``dynamic_axes`` the model takes inputs of any size. ``stored_in_f16``:
    constants lie in the file in half precision, as `openvino.save_model` has it unless told otherwise.
    """

    module: nn.Module
    shapes: dict[str, tuple[int, ...]]
    transformer: bool = False
    mixed: bool = False
    dynamic_axes: tuple[int, ...] = ()
    stored_in_f16: bool = False


def on_images(module: nn.Module, size: int, **kind: Any) -> Network:
    """``module`` on an image f32 [1, 3, size, size]."""
    return Network(module, {"image": (1, 3, size, size)}, **kind)


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
    """BERT, 4 layers of width 768, 128 tokens; its masked attention stays MatMul and Softmax."""
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=VOCABULARY, num_hidden_layers=4, attn_implementation="eager")
    return Network(BertModel(config), {"input_ids": (1, 128), "attention_mask": (1, 128)}, transformer=True)


def vit() -> Network:
    """ViT-B/16, 4 layers; conversion fuses its attention to ScaledDotProductAttention."""
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(num_hidden_layers=4, num_labels=1000, attn_implementation="eager")
    return on_images(ViTForImageClassification(config), 224, transformer=True)


def convnext() -> Network:
    """ConvNeXt-T: 7x7 depthwise convolutions, channel-last linear layers, LayerNorm, GELU."""
    from torch import nn
    from transformers import ConvNextConfig, ConvNextForImageClassification

    module = ConvNextForImageClassification(ConvNextConfig(num_labels=1000))
    for name, parameter in module.named_parameters():
        if name.endswith("layer_scale_parameter"):
            nn.init.uniform_(parameter, 0.2, 1)  # 1e-6 without training: the blocks would add nothing
    return on_images(module, 224, mixed=True)


def unet() -> Network:
    """UNet: transposed convolutions, concatenations, no global pooling."""
    from tools.zoo.modules import UNet

    return on_images(UNet(), 256)


def swin() -> Network:
    """Swin-T: attention in shifted windows, many Reshapes and Transposes."""
    from transformers import SwinConfig, SwinForImageClassification

    config = SwinConfig(num_labels=1000, attn_implementation="eager")
    return on_images(SwinForImageClassification(config), 224, transformer=True)


def segformer() -> Network:
    """SegFormer-B0: attention on reduced keys, depthwise convolutions between Transposes, Interpolate."""
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    config = SegformerConfig(num_labels=21, attn_implementation="eager")
    return on_images(SegformerForSemanticSegmentation(config), 256, transformer=True)


def shufflenet() -> Network:
    """ShuffleNet V2 1.0: Split, Concat and ShuffleChannels between convolutions."""
    from tools.zoo.modules import shufflenet

    return on_images(shufflenet(), 224)


def yolo() -> Network:
    """YOLOv5-like: SiLU, one activation for two convolutions, chained max pools, three outputs."""
    from tools.zoo.modules import Yolo

    return on_images(Yolo(), 320, mixed=True)


def densenet() -> Network:
    """DenseNet-like: ever longer concatenations, BatchNorm before the convolution, average pooling."""
    from tools.zoo.modules import densenet

    return on_images(densenet(), 224)


def googlenet() -> Network:
    """GoogLeNet-like: four branches a block, max pooling with the output size rounded up (ceil_torch)."""
    from tools.zoo.modules import googlenet

    return on_images(googlenet(), 224)


def regnet() -> Network:
    """RegNetY-800MF: grouped convolutions, squeeze and excitation."""
    from transformers import RegNetConfig, RegNetForImageClassification

    config = RegNetConfig(hidden_sizes=[64, 128, 320, 768], depths=[1, 3, 8, 2], groups_width=16, num_labels=1000)
    return on_images(RegNetForImageClassification(config), 224)


def lstm_tagger() -> Network:
    """A bidirectional LSTM over 64 frames of sound, its initial states are inputs."""
    from tools.zoo.modules import Tagger

    return Network(Tagger(), {"frames": (1, 64, 80), "hidden": (2, 1, 256), "cell": (2, 1, 256)})


def wav2vec2() -> Network:
    """wav2vec 2.0, 4 layers of width 256, one second of sound at 16 kHz: one-dimensional convolutions."""
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    config = Wav2Vec2Config(
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
        conv_dim=(256,) * 7,
        attn_implementation="eager",
    )
    return Network(Wav2Vec2Model(config), {"sound": (1, 16000)}, transformer=True)


def yolos() -> Network:
    """YOLOS, 4 layers of width 192: ViT with detection tokens."""
    from torch import nn
    from transformers import YolosConfig, YolosForObjectDetection

    config = YolosConfig(
        hidden_size=192,
        num_hidden_layers=4,
        num_attention_heads=3,
        intermediate_size=768,
        image_size=[224, 224],
        use_mid_position_embeddings=False,
        initializer_range=0.1,
        attn_implementation="eager",
    )
    module = YolosForObjectDetection(config)
    nn.init.normal_(module.vit.embeddings.detection_tokens)  # zeros, all detections equal, without training
    return on_images(module, 224, transformer=True)


def dpt() -> Network:
    """DPT, 4 layers of width 384: a decoder of (also transposed) convolutions joins ViT's layers."""
    from transformers import DPTConfig, DPTForDepthEstimation

    config = DPTConfig(
        hidden_size=384,
        num_hidden_layers=4,
        num_attention_heads=6,
        intermediate_size=1536,
        image_size=224,
        backbone_out_indices=[0, 1, 2, 3],
        neck_hidden_sizes=[48, 96, 192, 384],
        fusion_hidden_size=96,
        attn_implementation="eager",
    )
    return on_images(DPTForDepthEstimation(config), 224, transformer=True)


def fcn() -> Network:
    """A residual network for images of any number and size (dynamic batch, height, width); stored in f16."""
    from tools.zoo.modules import residual_encoder

    return on_images(residual_encoder(), 96, mixed=True, dynamic_axes=(0, 2, 3), stored_in_f16=True)


NETWORKS: dict[str, Callable[[], Network]] = {
    network.__name__: network
    for network in (
        *(resnet50, mobilenet_v2, regnet, shufflenet, densenet, googlenet, convnext),
        *(unet, yolo, fcn),
        *(bert, vit, swin, segformer, yolos, dpt, wav2vec2),
        lstm_tagger,
    )
}
