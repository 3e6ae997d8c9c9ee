"""Numbers in words, for messages and tables."""


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 run", "2 runs"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def minutes(seconds: float) -> str:
    """A duration in seconds, or in minutes if it is long."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"
