"""Limits on the number of runs. They apply to the product, because every factor may be small."""

from fullpipe.errors import mistake

# Runs whose records are in memory until they are reported.
MOST_RUNS = 10_000
# Runs of a grid or a study, which are on disk.
MOST_STORED_RUNS = 100_000
# Cells of a grid.
MOST_CELLS = 10_000


def check_runs(
    name: str, given: int, alternatives: int, most: int = MOST_RUNS, what: str = "alternatives"
) -> None:
    """Checks that `given` runs (`name` is the parameter) of each alternative are at most `most` in all.

    `what` is what the alternatives are, e.g. cells of a grid.

    Raises:
        ScenarioError: They are more.
    """
    if given * alternatives <= most:
        return
    product = (
        f"; {alternatives} {what} with {given} {name} each are {given * alternatives}"
        if alternatives > 1
        else ""
    )
    raise mistake(
        name,
        given,
        f"at most {most} runs in all{product}",
        f"give at most {max(1, most // alternatives)}",
    )
