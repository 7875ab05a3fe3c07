"""Hand-written torch modules: small versions of networks that transformers does not have."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate


def conv(
    inputs: int,
    outputs: int,
    kernel: int = 1,
    stride: int = 1,
    groups: int = 1,
    act: type[nn.Module] | None = nn.ReLU,
) -> nn.Sequential:
    """Convolution, BatchNorm and activation; the spatial size changes by the stride alone."""
    layers = [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*layers, *([act()] if act else []))


class Branches(nn.ModuleList):
    """The branches' outputs of one input, joined along the channels."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self], 1)


class UNet(nn.Module):
    """Encoder and decoder joined by concatenations; 2x2 transposed convolutions go up."""

    def __init__(self, classes: int = 4, width: int = 24, depth: int = 4):
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.stem = self.twice(3, width)
        self.down = nn.ModuleList(
            nn.Sequential(nn.MaxPool2d(2), self.twice(thin, thick)) for thin, thick in pairwise(widths)
        )
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * thin, thin, 2, 2) for thin in widths[-2::-1])
        self.merge = nn.ModuleList(self.twice(2 * thin, thin) for thin in widths[-2::-1])
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def twice(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(conv(inputs, outputs, 3), conv(outputs, outputs, 3))

    def forward(self, x: Tensor) -> Tensor:
        skips = [self.stem(x)]
        for down in self.down:
            skips.append(down(skips[-1]))
        x = skips.pop()
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([skips.pop(), up(x)], 1))
        return self.head(x)


class ShuffleUnit(nn.Module):
    """ShuffleNet V2's unit: half of the channels pass by, with stride 2 all are computed; then they mix."""

    def __init__(self, channels: int, stride: int = 1, inputs: int | None = None):
        super().__init__()
        half, inputs = channels // 2, inputs or channels // 2
        self.main = nn.Sequential(
            conv(inputs, half), conv(half, half, 3, stride, groups=half, act=None), conv(half, half)
        )
        self.side = nn.Identity()
        if stride > 1:
            self.side = nn.Sequential(conv(inputs, inputs, 3, stride, groups=inputs, act=None), conv(inputs, half))
        self.splits = stride == 1
        self.shuffle = nn.ChannelShuffle(2)

    def forward(self, x: Tensor) -> Tensor:
        left, right = x.chunk(2, 1) if self.splits else (x, x)
        return self.shuffle(torch.cat([self.side(left), self.main(right)], 1))


def shufflenet(classes: int = 1000) -> nn.Sequential:
    stages, inputs = [], 24
    for channels, repeats in ((116, 3), (232, 7), (464, 3)):
        stages += [ShuffleUnit(channels, 2, inputs), *(ShuffleUnit(channels) for _ in range(repeats))]
        inputs = channels
    return nn.Sequential(
        *(conv(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1), *stages, conv(inputs, 1024)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, classes)),
    )


class Bottleneck(nn.Module):
    """A pair of convolutions and the residual Add."""

    def __init__(self, channels: int):
        super().__init__()
        self.body = nn.Sequential(conv(channels, channels, act=nn.SiLU), conv(channels, channels, 3, act=nn.SiLU))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class CrossStage(nn.Module):
    """One activation feeds two convolutions; the first goes through bottlenecks, both are concatenated."""

    def __init__(self, inputs: int, outputs: int, depth: int = 1):
        super().__init__()
        half = outputs // 2
        deep = (conv(inputs, half, act=nn.SiLU), *(Bottleneck(half) for _ in range(depth)))
        self.branches = Branches([nn.Sequential(*deep), conv(inputs, half, act=nn.SiLU)])
        self.last = conv(outputs, outputs, act=nn.SiLU)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.branches(x))


class PyramidPooling(nn.Module):
    """A chain of three 5x5 max pools, each step kept and concatenated (SPPF)."""

    def __init__(self, channels: int):
        super().__init__()
        self.first = conv(channels, channels // 2, act=nn.SiLU)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.last = conv(2 * channels, channels, act=nn.SiLU)

    def forward(self, x: Tensor) -> Tensor:
        steps = [self.first(x)]
        for _ in range(3):
            steps.append(self.pool(steps[-1]))
        return self.last(torch.cat(steps, 1))


class Yolo(nn.Module):
    """Three scales of a SiLU backbone, merged top down with nearest upsampling; one 1x1 head a scale."""

    def __init__(self, width: int = 32, outputs: int = 85):
        super().__init__()
        w2, w4, w8, w16 = (width * factor for factor in (2, 4, 8, 16))
        self.fine = nn.Sequential(conv(3, width, 3, 2, act=nn.SiLU), self.down(width, w2, 1), self.down(w2, w4, 2))
        self.middle = self.down(w4, w8, 2)
        self.coarse = nn.Sequential(self.down(w8, w16, 1), PyramidPooling(w16))
        self.narrow_coarse, self.narrow_middle = conv(w16, w8, act=nn.SiLU), conv(w8, w4, act=nn.SiLU)
        self.merge_middle, self.merge_fine = CrossStage(2 * w8, w8), CrossStage(2 * w4, w4)
        self.heads = nn.ModuleList(nn.Conv2d(channels, 3 * outputs, 1) for channels in (w4, w8, w8))

    @staticmethod
    def down(inputs: int, outputs: int, depth: int) -> nn.Sequential:
        return nn.Sequential(conv(inputs, outputs, 3, 2, act=nn.SiLU), CrossStage(outputs, outputs, depth))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        fine = self.fine(x)
        middle = self.middle(fine)
        coarse = self.narrow_coarse(self.coarse(middle))
        middle = self.merge_middle(torch.cat([interpolate(coarse, scale_factor=2.0), middle], 1))
        fine = self.merge_fine(torch.cat([interpolate(self.narrow_middle(middle), scale_factor=2.0), fine], 1))
        scales = (fine, middle, coarse)
        return tuple(head(scale) for head, scale in zip(self.heads, scales, strict=True))


class DenseLayer(nn.Module):
    """Adds ``growth`` channels to those it reads; BatchNorm comes before the convolutions."""

    def __init__(self, inputs: int, growth: int):
        super().__init__()
        narrow = conv(inputs, 4 * growth)
        self.body = nn.Sequential(
            nn.BatchNorm2d(inputs), nn.ReLU(), narrow, nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.body(x)], 1)


def densenet(growth: int = 32, classes: int = 1000) -> nn.Sequential:
    channels = 2 * growth
    layers: list[nn.Module] = [conv(3, channels, 7, 2), nn.MaxPool2d(3, 2, 1)]
    for index, depth in enumerate((4, 8, 12, 8)):
        if index:
            layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels // 2, 1, bias=False)]
            layers += [nn.AvgPool2d(2)]
            channels //= 2
        layers += [DenseLayer(channels + i * growth, growth) for i in range(depth)]
        channels += depth * growth
    head = (
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(channels, classes),
    )
    return nn.Sequential(*layers, *head)


def inception(inputs: int, direct: int, *convolved: tuple[int, int], pooled: int) -> Branches:
    """GoogLeNet's block: 1x1, two bottlenecked 3x3, and a pool with a 1x1 after it."""
    pool = nn.Sequential(nn.MaxPool2d(3, 1, 1, ceil_mode=True), conv(inputs, pooled))
    threes = (nn.Sequential(conv(inputs, thin), conv(thin, thick, 3)) for thin, thick in convolved)
    return Branches([conv(inputs, direct), *threes, pool])


def googlenet(classes: int = 1000) -> nn.Sequential:
    half = nn.MaxPool2d(3, 2, ceil_mode=True)
    return nn.Sequential(
        *(conv(3, 64, 7, 2), half, conv(64, 64), conv(64, 192, 3), half),
        inception(192, 64, (96, 128), (16, 32), pooled=32),
        inception(256, 128, (128, 192), (32, 96), pooled=64),
        half,
        inception(480, 192, (96, 208), (16, 48), pooled=64),
        inception(512, 160, (112, 224), (24, 64), pooled=64),
        inception(512, 112, (144, 288), (32, 64), pooled=64),
        inception(528, 256, (160, 320), (32, 128), pooled=128),
        half,
        inception(832, 384, (192, 384), (48, 128), pooled=128),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, classes)),
    )


class Tagger(nn.Module):
    """Frames [1, length, features] and initial states [2, 1, width] → tag scores [1, length, tags].

    An LSTM in both directions. Its states are inputs, as in streaming: NNCF quantizes constant states like
    weights, and the CPU plugin has no integer kernel for that.
    """

    def __init__(self, features: int = 80, width: int = 256, tags: int = 16):
        super().__init__()
        self.embedding = nn.Sequential(nn.Linear(features, width), nn.ReLU())
        self.recurrent = nn.LSTM(width, width, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * width, tags)

    def forward(self, frames: Tensor, hidden: Tensor, cell: Tensor) -> Tensor:
        return self.head(self.recurrent(self.embedding(frames), (hidden, cell))[0])


class Residual(nn.Module):
    """Two 3x3 convolutions and what they were given, through a 1x1 convolution where the size changes."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1):
        super().__init__()
        self.body = nn.Sequential(conv(inputs, outputs, 3, stride), conv(outputs, outputs, 3, act=None))
        same = stride == 1 and inputs == outputs
        self.skip = nn.Identity() if same else conv(inputs, outputs, 1, stride, act=None)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.skip(x))


def residual_encoder(width: int = 32, classes: int = 16) -> nn.Sequential:
    widths = [width << level for level in range(4)]
    stages = (layer for a, b in pairwise(widths) for layer in (Residual(a, b, 2), Residual(b, b)))
    return nn.Sequential(conv(3, width, 3, 2), *stages, nn.Conv2d(widths[-1], classes, 1))
