"""Writes texts of others into Markdown so that they are shown as they are."""

import html
import re


def md(text: str) -> str:
    r"""Return a text as Markdown that shows it as it is, in one line; what is between backticks is code.

    >>> md("a|b  <image> *c*")
    'a\\|b &lt;image&gt; \\*c\\*'
    """
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return "".join(part.replace("|", " ") if number % 2 else _escaped(part) for number, part in enumerate(parts))


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]|#!~$])", r"\\\1", html.escape(text, quote=False))
