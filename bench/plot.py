"""A line chart as SVG, small enough to read in a diff."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10
from pathlib import Path

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 320, 56, 40, 40
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#8250df")

Points = Sequence[tuple[float, float]]


def chart(path: Path, title: str, across: str, lines: Mapping[str, Points]) -> None:
    """Write a chart of milliseconds over counts; the counts are on a logarithmic scale."""
    every = [point for points in lines.values() for point in points]
    low, high = log10(min(x for x, _ in every)), log10(max(x for x, _ in every))
    top = max(y for _, y in every) * 1.15
    wide, tall = WIDTH - LEFT - 20, HEIGHT - TOP - BOTTOM

    def place(x: float, y: float) -> str:
        share = (log10(x) - low) / ((high - low) or 1)
        return f"{LEFT + share * wide:.1f},{TOP + tall - y / top * tall:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
        ' font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="14">{title}</text>',
    ]
    for step in range(5):
        value = top * step / 4
        y = place(10**low, value).split(",")[1]
        parts.append(f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - 20}" y2="{y}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y}" text-anchor="end">{value:.2f}</text>')
    for x in sorted({x for x, _ in every}):
        at = place(x, 0).split(",")[0]
        parts.append(f'<text x="{at}" y="{HEIGHT - 22}" text-anchor="middle">{x:,.0f}</text>')
    parts.append(f'<text x="{WIDTH - 20}" y="{HEIGHT - 6}" text-anchor="end">{across}; milliseconds</text>')
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        joined = " ".join(place(x, y) for x, y in points)
        parts.append(f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x = WIDTH - 200
        parts.append(f'<text x="{x}" y="{22 + 15 * number}" fill="{colour}">{name}</text>')
    path.write_text("\n".join([*parts, "</svg>"]) + "\n")
