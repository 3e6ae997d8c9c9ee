"""The gallery: a document with every claim's figure, verdict and command, and a folder of small images.

It is made of the same evidence as the document of all verdicts. The images are those of the last runs.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from fullpipe import files
from fullpipe.report.figures import theme
from fullpipe.report.figures.svg import png as as_png
from fullpipe.text import capitalised
from fullpipe_studies.catalogue import Built, Study
from fullpipe_studies.document import Former, Line
from fullpipe_studies.write import loaded

# Pixels per unit: small images for a repository, but readable.
_SCALE = 0.75

_HEAD = """# Gallery

Made by `make docs` from what `fullpipe study claims --record` kept, together with {table}, which explains
the words and marks; not edited by hand. The reports in `out/` have the same figures interactive, with every
check and interval.
"""


def pictures(
    document: Path, folders: Sequence[tuple[Study, Path]], say: Callable[[str], object] = lambda _line: None
) -> None:
    """Writes the images of a document's claims into a folder with its name without the suffix."""
    for study, folder in folders:
        for result in loaded(study, folder, say):
            if result.svg is not None:
                name = f"{document.stem}/{study.name}-{result.said['name']}.png"
                files.write(document.parent, name, as_png(result.svg, scale=_SCALE))


def markdown(
    document: Path,
    lines: Sequence[Line],
    studies: Sequence[Study],
    before: Former,
    table: str,
    say: Callable[[str], object] = lambda _line: None,
) -> str:
    """The text of the document, whose images are beside it.

    `lines` are those of the table of all verdicts, which is called `table`; `before` is what they are from.
    `say` is called with notes on what was left out.
    """
    parts = [_HEAD.format(table=f"[the table of all verdicts]({table})")]
    for study in studies:
        verdicts = {
            one.id: [line for line in lines if line.claim == one.id and line.ran] for one in study.claims
        }
        if any(verdicts.values()):
            parts.append(f"## {study.paper.title}\n\n{study.paper.cite}.\n")
        for built in study.claims:
            if not verdicts[built.id]:
                continue
            shown = f"{document.stem}/{study.name}-{built.name}.png"
            if not (document.parent / shown).is_file():
                say(f"{document} has no figure of {built.id}")
                shown = ""
            # The claim's file may already be about another figure.
            look_at = before.look_at.get(built.id, built.claim.look_at)
            command = before.commands.get(built.id, f"fullpipe study run {built.id}")
            parts.append(_entry(built, shown, look_at, f"{_verdicts(verdicts[built.id])}. `{command}`"))
    return "\n".join(parts)


def _entry(built: Built, shown: str, look_at: str, said: str) -> str:
    title = built.about.title
    figure = f"![{title}]({shown})\n\n{look_at}\n\n" if shown else ""
    return f"### {title} ({built.claim.source})\n\n{figure}{said}\n"


def _verdicts(lines: Sequence[Line]) -> str:
    return capitalised(", ".join(f"{theme.world_title(one.world)}: {one.shown}" for one in lines))
