"""Every command of docs/how-to/advisor/examples.md gives the answer that the page shows."""

import pytest

from advising import PAGE, Example, examples

pytestmark = pytest.mark.long

EXAMPLES = list(examples(PAGE.read_text(encoding="utf-8")))


def test_every_command_is_an_example() -> None:
    assert len(EXAMPLES) >= 7
    assert PAGE.read_text(encoding="utf-8").count("$ fullpipe") == len(EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.command.removeprefix("fullpipe advise "))
def test_example_page_matches_command_output(example: Example) -> None:
    """With a number of seeds instead of a time, on any machine."""
    assert "--seeds" in example.words
    assert example.run() == example.shown
