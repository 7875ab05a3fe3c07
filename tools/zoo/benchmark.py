"""The networks that a comparison of speed with the stock plugin should run, and what each is for.

``obstacle`` says what keeps the stock plugin from int8, or from the fusions of int8, somewhere in the network; "none"
where it runs every convolution and every MatMul with weights in int8 and fuses what follows.
"""

from __future__ import annotations

from typing import NamedTuple


class Contender(NamedTuple):
    name: str  # in `tools.zoo.catalogue.CATALOGUE`
    obstacle: str


BENCHMARK = (
    Contender("resnet50", "none"),
    Contender("mobilenet_v2", "none"),
    Contender("densenet", "none"),
    Contender("convnext", "none"),
    Contender("yolo", "none"),
    Contender("fcn", "none"),
    Contender("resnet18_qdq", "none"),
    Contender("lstm_tagger", "none"),
    Contender("bert", "attention: nothing is quantized between Softmax and the MatMul after it"),
    Contender("vit", "attention: nothing is quantized between Softmax and the MatMul after it"),
    Contender("swin", "attention: nothing is quantized between Softmax and the MatMul after it"),
    Contender("yolos", "attention: nothing is quantized between Softmax and the MatMul after it"),
    Contender("wav2vec2", "attention: nothing is quantized between Softmax and the MatMul after it"),
    Contender("segformer", "scales per channel before Transpose and Reshape: depthwise convolutions stay float"),
    Contender("dpt", "attention as in ViT; transposed convolutions of data with a zero point stay float"),
    Contender("unet", "transposed convolutions of signed data, for which AVX2 has no int8 kernel"),
    Contender("regnet", "squeeze and excitation: its convolutions read the float result of ReduceMean"),
    Contender("shufflenet", "ShuffleChannels and Concat move int8 data for half of the time"),
    Contender("googlenet", "MaxPool-14 with ceil_torch: no rule, and the convolutions after stay float"),
    Contender("resnet18_u8_weights", "u8 weights with the zero point 128: all convolutions stay float"),
    Contender("shared_head", "convolutions share one bias constant, which is then not fused"),
    Contender("leaky", "PRelu on data with a zero point: the convolutions after stay float"),
)
