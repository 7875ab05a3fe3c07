"""Lines and pages of text, drawn with real fonts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

LICENSE = Path(__file__).parents[2] / "LICENSE"
STYLES = ("Regular", "It", "Semibold", "Bold", "Light")

Box = tuple[int, int, int, int]  # left, top, right, bottom


class Typesetter:
    """Draws text in the colours, sizes and styles that ``rng`` draws; ``fonts`` are TrueType files."""

    def __init__(self, rng: np.random.Generator, fonts: list[Path]):
        self.rng = rng
        self.fonts = fonts
        words = (word.strip("(),.;:\"'[]") for word in LICENSE.read_text().split())
        self.words = sorted({word for word in words if word.isascii() and word.isalpha() and len(word) > 2})

    def phrase(self, words: int = 1) -> str:
        """A number, a date or up to ``words`` words."""
        kind = self.rng.integers(5)
        if kind == 0:
            return f"{self.rng.integers(10000)}.{self.rng.integers(100):02d}"
        if kind == 1:
            return f"{self.rng.integers(1990, 2030)}-{self.rng.integers(1, 13):02d}-{self.rng.integers(1, 29):02d}"
        return " ".join(self.rng.choice(self.words, self.rng.integers(1, words + 1)))

    def line(self, text: str, height: int = 48) -> np.ndarray:
        """``text`` as an image uint8 [height, width, 3]; the width is the text's."""
        from PIL import Image, ImageDraw

        font = self._font(30, 40)
        left, top, right, bottom = font.getbbox(text)
        pad = int(self.rng.integers(4, 10))
        paper, ink = self._colours()
        image = Image.new("RGB", (right - left + 2 * pad, bottom - top + 2 * pad), paper)
        ImageDraw.Draw(image).text((pad - left, pad - top), text, fill=ink, font=font)
        return self._noise(image.resize((max(8, round(image.width * height / image.height)), height)))

    def page(self, height: int, width: int, size: tuple[int, int] = (18, 34)) -> tuple[np.ndarray, list[Box]]:
        """A page uint8 [height, width, 3] with lines of text, and the box of each line."""
        from PIL import Image, ImageDraw

        paper, ink = self._colours()
        image = Image.new("RGB", (width, height), paper)
        draw, boxes, y = ImageDraw.Draw(image), [], 10
        while y < height - size[1] - 8:
            text, font, x = self.phrase(3), self._font(*size), int(self.rng.integers(5, width // 5))
            left, top, right, bottom = font.getbbox(text)
            draw.text((x, y), text, fill=ink, font=font)
            boxes.append((x + left, y + top, min(width, x + right), y + bottom))
            y += int(bottom + self.rng.integers(8, 40))
        return self._noise(image), boxes

    def scatter(self, picture: np.ndarray, count: int) -> tuple[np.ndarray, list[Box]]:
        """A square picture uint8 [side, side, 3] with ``count`` letters in the cells of a grid of 3x3, and the box of each."""
        from PIL import Image, ImageDraw

        image, boxes, cell = Image.fromarray(picture), [], len(picture) // 3
        draw = ImageDraw.Draw(image)
        for place in self.rng.permutation(9)[:count]:
            letter, font = chr(ord("A") + int(self.rng.integers(26))), self._font(cell * 2 // 5, cell * 3 // 5)
            paper, ink = self._colours()
            left, top, right, bottom = draw.textbbox((0, 0), letter, font=font, stroke_width=2)
            x, y = (int(index) * cell + int(self.rng.integers(5, cell * 2 // 5)) for index in (place % 3, place // 3))
            draw.text((x - left, y - top), letter, fill=paper, font=font, stroke_width=2, stroke_fill=ink)
            boxes.append((x, y, x + int(right - left), y + int(bottom - top)))
        return np.asarray(image), boxes

    def _font(self, low: int, high: int):
        from PIL import ImageFont

        return ImageFont.truetype(self.fonts[self.rng.integers(len(self.fonts))], int(self.rng.integers(low, high)))

    def _colours(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        light, dark = self.rng.integers(150, 256, 3), self.rng.integers(0, 90, 3)
        pair = (light, dark) if self.rng.random() < 0.7 else (dark, light)
        first, second = (tuple(map(int, colour)) for colour in pair)
        return first, second

    def _noise(self, image) -> np.ndarray:
        pixels = np.asarray(image, np.float32)
        return np.clip(pixels + self.rng.normal(0, self.rng.uniform(0, 10), pixels.shape), 0, 255).astype(np.uint8)


def blob(image: np.ndarray, mean: float = 0.5, deviation: float = 0.5) -> np.ndarray:
    """An image uint8 [height, width, 3] as float32 [1, 3, height, width]."""
    return ((image.astype(np.float32) / 255 - mean) / deviation).transpose(2, 0, 1)[None].copy()
