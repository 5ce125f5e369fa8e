"""How an array shows itself in a notebook: its facts, and a drawing of its shards and inner chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zardine.chunk_grids import Axis
from zardine.nodes.display import describe_array

if TYPE_CHECKING:
    from zardine.nodes.array import Array

_LONGEST = 180.0
"""Pixels of the longer side of the drawing."""

_LETTER = 7.0
"""Pixels that a letter of the caption takes at most, on average."""

_MOST_LINES = 60
"""Finer grids than this are not drawn: they would be a solid block."""


def array_html(array: Array) -> str:
    """A table beside a drawing of the array's last two axes."""
    table = describe_array(array)._repr_html_()
    drawing = grid_svg(array)
    return (
        '<div style="display:flex;gap:24px;align-items:center;flex-wrap:wrap">'
        f"<div>{table}</div><div>{drawing}</div></div>"
    )


def grid_svg(array: Array) -> str:
    """The last two axes as a picture: thick lines around shards (or chunks), thin ones around inner chunks."""
    grids = array._source.layout.grids
    if array.ndim == 0 or array.size == 0:
        return ""
    objects, chunks = grids.objects[-2:], grids.chunks[-2:]
    rows = array.shape[-2] if array.ndim > 1 else max(1, array.shape[-1] // 8)
    columns = array.shape[-1]
    scale = _LONGEST / max(rows, columns)
    height, width = max(rows * scale, 12.0), max(columns * scale, 12.0)
    lines = []
    for axes, style in ((chunks, 'stroke="#9ab" stroke-width="0.6"'), (objects, 'stroke="#234" stroke-width="1.4"')):
        for y in _borders(axes[-2], height) if array.ndim > 1 else ():
            lines.append(f'<line x1="0" y1="{y:.1f}" x2="{width:.1f}" y2="{y:.1f}" {style}/>')
        for x in _borders(axes[-1], width):
            lines.append(f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{height:.1f}" {style}/>')
    note = "shards, inner chunks" if array._source.layout.sharding is not None else "chunks"
    axes_text = " × ".join(map(str, array.shape))
    caption = f"{axes_text}: {note}"
    whole = max(width, len(caption) * _LETTER) + 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole:.0f}" height="{height + 22:.0f}" '
        f'viewBox="-2 -2 {whole:.0f} {height + 22:.0f}" role="img" aria-label="{axes_text}, {note}">'
        f'<rect x="0" y="0" width="{width:.1f}" height="{height:.1f}" fill="#e8f0f4" stroke="#234" stroke-width="1.4"/>'
        f"{''.join(lines)}"
        f'<text x="0" y="{height + 15:.1f}" font-family="sans-serif" font-size="11" fill="#567">'
        f"{caption}</text>"
        "</svg>"
    )


def _borders(axis: Axis, pixels: float) -> list[float]:
    if axis.count > _MOST_LINES:
        return []
    return [axis.start(i) / axis.length * pixels for i in range(1, axis.count)]
