"""Numbers and lists in words; text of files, names and exceptions, made fit for a message, a table or a page.

A terminal obeys control characters, and characters that change the direction of text disguise a line.
"""

import re
from collections.abc import Sequence

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


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 run", "2 runs"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def minutes(seconds: float) -> str:
    """A duration in seconds, or in minutes if it is long."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def ran_by(host: str) -> str:
    """What carried a run, for readers: a release of Linux, or programs with their versions."""
    return f"Linux {host}" if host[:1].isdigit() else host


def capitalised(text: str) -> str:
    """The text as the beginning of a sentence; other letters keep their case, unlike with `capitalize`."""
    return text[:1].upper() + text[1:]


def joined(words: Sequence[str], last: str = "and") -> str:
    """A list in words: "a", "a and b", "a, b and c". Another word may stand before the last."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
