"""Bar and line plots as SVG: no library, few colours, readable on white and on black."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 56, 48
COLOURS = ("#2f6fb0", "#d9822b", "#5f9e5b", "#9a6fb0")
INK = "#6b7280"


def _text(x, y, words, anchor="middle", size=12, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'font-weight="{weight}" fill="{INK}">{escape(str(words))}</text>')


def _number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2g}"


def _ceiling(most):
    """A round number that is not below."""
    step = 10 ** (len(str(int(most))) - 1) if most >= 1 else 0.1
    while step * 10 < most:
        step *= 10
    return next(step * factor for factor in (1, 2, 3, 4, 5, 6, 8, 10, 20) if step * factor >= most)


def _frame(title, unit, top, names):
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
             f'font-family="sans-serif"><title>{escape(title)}</title>',
             _text(LEFT, 20, title, "start", 14, "bold"), _text(LEFT - 8, TOP - 10, unit, "end", 11)]
    for line in range(5):
        value = top * line / 4
        y = _y(value, top)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="{INK}" '
                     f'stroke-opacity="{0.8 if line == 0 else 0.25}"/>')
        parts.append(_text(LEFT - 8, y + 4, _number(value) if value else "0", "end", 11))
    for number, name in enumerate(names):
        x = WIDTH - RIGHT - 130 * (len(names) - number)
        parts.append(f'<rect x="{x}" y="28" width="10" height="10" fill="{COLOURS[number]}"/>')
        parts.append(_text(x + 15, 37, name, "start", 11))
    return parts


def _y(value, top):
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top


def bars(title, unit, groups):
    """groups: {group: {name: (median, least, most)}}; the least and the most are a whisker."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    top = _ceiling(max(most for group in groups.values() for _, _, most in group.values()))
    parts = _frame(title, unit, top, names)
    slot = (WIDTH - LEFT - RIGHT) / len(groups)
    width = min(56, slot * 0.8 / len(names))
    for number, (label, group) in enumerate(groups.items()):
        middle = LEFT + slot * (number + 0.5)
        parts.append(_text(middle, HEIGHT - BOTTOM + 18, label))
        for place, (name, (median, least, most)) in enumerate(group.items()):
            x = middle + width * (place - len(group) / 2)
            y, centre = _y(median, top), x + width / 2
            parts.append(f'<rect x="{x + 2:.1f}" y="{y:.1f}" width="{width - 4:.1f}" '
                         f'height="{HEIGHT - BOTTOM - y:.1f}" fill="{COLOURS[names.index(name)]}"/>')
            if most > least:
                parts.append(f'<line x1="{centre:.1f}" y1="{_y(least, top):.1f}" x2="{centre:.1f}" '
                             f'y2="{_y(most, top):.1f}" stroke="{INK}" stroke-width="2"/>')
            parts.append(_text(centre, _y(most, top) - 5, _number(median), size=11))
    return "\n".join([*parts, "</svg>", ""])


def lines(title, unit, x_unit, series):
    """series: {name: {x: y}}, the x values in equal steps in their order."""
    steps = sorted({x for points in series.values() for x in points})
    top = _ceiling(max(y for points in series.values() for y in points.values()))
    parts = _frame(title, unit, top, list(series))
    slot = (WIDTH - LEFT - RIGHT) / len(steps)
    for number, x in enumerate(steps):
        parts.append(_text(LEFT + slot * (number + 0.5), HEIGHT - BOTTOM + 18, f"{x:,}"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_unit, size=11))
    for colour, (_, points) in zip(COLOURS, series.items()):
        at = [(LEFT + slot * (steps.index(x) + 0.5), _y(y, top), y) for x, y in sorted(points.items())]
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="' +
                     " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in at) + '"/>')
        for x, y, value in at:
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
            parts.append(_text(x, y - 9, _number(value), size=11))
    return "\n".join([*parts, "</svg>", ""])
