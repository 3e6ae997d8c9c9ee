"""Numbers and lists in words, for messages and tables."""

from collections.abc import Sequence


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
