"""The gallery: a document with every claim's figure, verdict and command, and a folder of small images.

It is made of the same evidence as the document of all verdicts. The images are those of the last runs.
"""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from fullpipe import files
from fullpipe.report.figures import theme
from fullpipe.report.figures.svg import png as as_png
from fullpipe.text import capitalised
from fullpipe_studies.catalogue import Built, Study
from fullpipe_studies.document import Row
from fullpipe_studies.write import loaded

# Pixels per unit: small images for a repository, but readable.
_SCALE = 0.75

_HEAD = """# Gallery

`make docs` makes this page from `results/`; {table} explains the words. `fullpipe study run CLAIM` makes a
claim's figure again, and a report with the same figure, interactive, and every check and interval.
"""


def pictures(
    document: Path,
    folders: Sequence[tuple[Study, Path]],
    claims: Collection[str],
    say: Callable[[str], object] = lambda _line: None,
) -> None:
    """Writes the images of these claims into a folder with the document's name without the suffix."""
    for study, folder in folders:
        for result in loaded(study, folder, say):
            if result.svg is not None and result.facts["id"] in claims:
                name = f"{document.stem}/{study.name}-{result.facts['name']}.png"
                files.write(document.parent, name, as_png(result.svg, scale=_SCALE))


def markdown(
    document: Path,
    rows: Sequence[Row],
    studies: Sequence[Study],
    table: str,
    say: Callable[[str], object] = lambda _line: None,
    *,
    brief: bool = False,
) -> str:
    """The text of the document, whose images are beside it.

    `rows` are those of the table of all verdicts, which is called `table`. `say` is called with notes on what
    was left out. A `brief` one does not say what to look at.
    """
    parts = [_HEAD.format(table=f"[the table of all verdicts]({table})")]
    for study in studies:
        ran = {one.id: [row for row in rows if row.claim == one.id and row.line] for one in study.claims}
        if any(ran.values()):
            parts.append(f"## {study.paper.title}\n\n{study.paper.cite}.\n")
        for built in study.claims:
            lines = [row.line for row in ran[built.id] if row.line]
            if not lines:
                continue
            shown = f"{document.stem}/{study.name}-{built.name}.png"
            if not (document.parent / shown).is_file():
                say(f"{document} has no figure of {built.id}")
                shown = ""
            # The claim's file may already be about another figure.
            look_at = "" if brief else lines[-1]["look_at"] or built.claim.look_at
            parts.append(_entry(built, shown, look_at, f"{_verdicts(ran[built.id])}. `{built.id}`"))
    return "\n".join(parts)


def _entry(built: Built, shown: str, look_at: str, facts: str) -> str:
    title = built.about.title
    figure = f"![{built.id}]({shown})\n\n" if shown else ""  # The heading describes it.
    figure += f"{look_at}\n\n" if shown and look_at else ""
    return f"### {title} ({built.claim.source})\n\n{figure}{facts}\n"


def _verdicts(rows: Sequence[Row]) -> str:
    return capitalised(", ".join(f"{theme.world_title(one.world)}: {one.verdict}" for one in rows))
