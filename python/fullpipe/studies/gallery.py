"""The gallery: a document with every claim's figure, verdict and command, and a folder of small images."""

from collections.abc import Callable, Sequence
from pathlib import Path

from fullpipe.show.figures import theme
from fullpipe.studies.catalogue import Study
from fullpipe.studies.write import loaded
from fullpipe.system import files
from fullpipe.system.words import capitalised

# Pixels per unit: small images for a repository, but readable.
_SCALE = 0.75

_HEAD = """# Gallery

Written by `fullpipe study claims --gallery docs/gallery.md` from the last runs of `fullpipe study run`; not
edited by hand. The reports in `out/` have the same figures interactive, with every check and interval.
"""


def save(
    document: Path,
    folders: Sequence[tuple[Study, Path]],
    say: Callable[[str], None] = lambda _line: None,
) -> None:
    """Writes the document, and its images into a folder with its name without the suffix.

    `say` is called with notes on what was left out.
    """
    import vl_convert

    pictures = document.stem
    parts = [_HEAD]
    for study, folder in folders:
        results = [(one.said, one.svg) for one in loaded(study, folder, say) if one.svg is not None]
        if results:
            parts.append(f"## {study.paper.title}\n\n{study.paper.cite}.\n")
        for one, svg in results:
            shown = f"{pictures}/{study.name}-{one['name']}.png"
            files.write(document.parent, shown, vl_convert.svg_to_png(svg, scale=_SCALE))
            verdicts = capitalised(
                ", ".join(
                    f"{theme.world_title(each['world'])}: {each['verdict']}" for each in one["findings"]
                )
            )
            parts.append(
                f"### {one['title']} ({one['source']})\n\n![{one['title']}]({shown})\n\n{one['look_at']}\n\n"
                f"{verdicts}. `{one.get('command', 'fullpipe study run ' + one['id'])}`\n"
            )
    files.write_named(document, "\n".join(parts).encode())
