"""Text of files, names and exceptions, made fit for a message, a table or a page.

A terminal obeys control characters, and characters that change the direction of text disguise a line.
"""

import re

# The most characters that are shown of a text from elsewhere, and of one of our own sentences.
MOST_SHOWN = 500
MOST_SENTENCE = 2000


class _Escapes(dict[int, str]):
    """What `str.translate` puts in place of each character."""

    def __missing__(self, code: int) -> str:
        one = chr(code)
        # Wide spaces are not "printable", but harmless.
        harmless = one in "\n\t\xa0" or (one.isspace() and code > 0x1000 and one not in "\u2028\u2029")
        if one.isprintable() or harmless:
            return one
        # As JSON writes it, so that JSON that is printed stays the same data.
        units = one.encode("utf-16-be", "surrogatepass").hex()
        return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


_ESCAPES = _Escapes()


def printable(text: str) -> str:
    r"""The text with control, format and unassigned characters as `\uXXXX`; line ends and tabs stay."""
    return text if text.isprintable() else text.translate(_ESCAPES)


def shown(text: str, most: int = MOST_SHOWN) -> str:
    """The text in one line, with U+FFFD for what `printable` escapes.

    A long text loses its middle, because a message ends with its fix.
    """
    if len(text) > 4 * most:
        text = text[: 2 * most] + text[-2 * most :]
    return _cut("".join(" " if one.isspace() else _visible(one) for one in text).strip(), most)


def lines(text: str, most: int = MOST_SENTENCE) -> str:
    """The printable text with lines of a bounded length."""
    return "\n".join(_cut(printable(line), most) for line in text.split("\n"))


def _visible(one: str) -> str:
    return one if printable(one) == one else "\ufffd"


def _cut(line: str, most: int) -> str:
    back = most // 3
    return line if len(line) <= most else f"{line[: most - back - 5]} ... {line[-back:]}"


def cell(text: str) -> str:
    """The text as a cell of a table in Markdown: one line without bars and HTML tags."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", printable(" ".join(text.split()))).replace("|", r"\|")
