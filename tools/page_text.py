"""Words and numbers as the page of measured figures shows them."""

import re


def words(text):
    """On one line, and without Markdown's marks."""
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return re.sub(r"([\\*`<\[|])", r"\\\1", " ".join(text.split()))


def digits(value):
    """Three that count, every one before the point, and three behind it at the most."""
    if value < 0.001:
        return "<0.001"
    exponent = int(f"{value:.2e}".split("e")[1])
    return f"{value:.{min(3, max(0, 2 - exponent))}f}"


def ranks_of(count):
    return f"{count} rank{'' if count == 1 else 's'}"


def line(cells):
    return "| " + " | ".join(cells) + " |"
