"""The gallery: a document with every claim's figure, verdict and command, and a folder of small images.

It is written together with the document of all verdicts and has the same claims and verdicts. The figures of
claims that were not run here are kept.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fullpipe import files
from fullpipe.report.figures import theme
from fullpipe.report.figures.svg import png as as_png
from fullpipe.text import capitalised
from fullpipe_studies.catalogue import Built, Study
from fullpipe_studies.document import Line
from fullpipe_studies.write import Loaded, loaded

# Pixels per unit: small images for a repository, but readable.
_SCALE = 0.75

_TITLE = "# Gallery\n"
_HEAD = f"""{_TITLE}
Written by `fullpipe study claims --write docs/claims.md --gallery docs/gallery.md` from the last runs of
`fullpipe study run`, together with {{table}}, which explains the words and marks; not edited by hand. The
reports in `out/` have the same figures interactive, with every check and interval.
"""
_TABLE = "the table of all verdicts"


@dataclass(frozen=True)
class Former:
    """What a gallery said: by claim, the command of its runs, and what to look for in its figure."""

    commands: Mapping[str, str] = field(default_factory=dict)
    look_at: Mapping[str, str] = field(default_factory=dict)


def former(text: str) -> Former | None:
    """What a document says that `save` made; None if it is another one. An empty one may be replaced."""
    if text.strip() and not text.startswith(_TITLE):
        return None
    commands, look_at = {}, {}
    for entry in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        if found := re.search(r"`(fullpipe study run ([\w-]+\.[\w-]+)[^`]*)`", entry):
            commands[found[2]] = found[1]
            parts = entry.split("\n\n")
            if len(parts) > 3 and parts[1].startswith("!["):
                look_at[found[2]] = parts[2]
    return Former(commands, look_at)


def save(
    document: Path,
    lines: Sequence[Line],
    folders: Sequence[tuple[Study, Path]],
    before: Former | None = None,
    table: str | None = None,
    say: Callable[[str], object] = lambda _line: None,
) -> None:
    """Writes the document, and its images into a folder with its name without the suffix.

    `lines` are those of the table of all verdicts, which is called `table` if it is in the same folder.
    `say` is called with notes on what was left out.
    """
    before = before or Former()
    parts = [_HEAD.format(table=_TABLE if table is None else f"[{_TABLE}]({table})")]
    for study, folder in folders:
        verdicts = {
            one.id: [line for line in lines if line.claim == one.id and line.ran] for one in study.claims
        }
        if any(verdicts.values()):
            parts.append(f"## {study.paper.title}\n\n{study.paper.cite}.\n")
        results = {one.said["id"]: one for one in loaded(study, folder, say)}
        for built in study.claims:
            if not verdicts[built.id]:
                continue
            shown = f"{document.stem}/{study.name}-{built.name}.png"
            look_at = built.claim.look_at
            result = results.get(built.id)
            if result is not None and result.svg is not None:
                files.write(document.parent, shown, as_png(result.svg, scale=_SCALE))
            elif not (document.parent / shown).is_file():
                say(f"{document} has no figure of {built.id}: neither its runs nor a former figure are here")
                shown = ""
            else:
                # The claim's file may already be about another figure.
                look_at = before.look_at.get(built.id, look_at)
            said = f"{_verdicts(verdicts[built.id])}. `{_command(built, verdicts[built.id], result, before)}`"
            parts.append(_entry(built, shown, look_at, said))
    files.write_named(document, "\n".join(parts).encode())


def _entry(built: Built, shown: str, look_at: str, said: str) -> str:
    title = built.about.title
    figure = f"![{title}]({shown})\n\n{look_at}\n\n" if shown else ""
    return f"### {title} ({built.claim.source})\n\n{figure}{said}\n"


def _verdicts(lines: Sequence[Line]) -> str:
    return capitalised(", ".join(f"{theme.world_title(one.world)}: {one.shown}" for one in lines))


def _command(built: Built, lines: Sequence[Line], result: Loaded | None, before: Former) -> str:
    """The command that repeats the runs of a claim, as far as it is known."""
    if result is not None and "command" in result.said:
        return str(result.said["command"])
    quick = " --quick" if any("(quick" in one.verdict for one in lines) else ""
    return before.commands.get(built.id, f"fullpipe study run {built.id}{quick}")
