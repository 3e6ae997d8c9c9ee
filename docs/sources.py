"""Links of a page to files that are no pages: the site has copies of these files.

On the site, `[text](../../crates/cc/README.md)` leads to `source/crates/cc/README.md.txt`, and a link to a
folder to a list of its files. Other pages can link to a place that is marked with `<a id="...">`.
"""

import html
import os
import re
import shutil
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
LAB = ROOT / "python" / "fullpipe" / "cli" / "site"

_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#:\s]*)(#[^)\s]*)?\)")
_CODE = re.compile(r"(^```.*?^```$|^(?: {4}[^\n]*\n)+)", re.MULTILINE | re.DOTALL)
_linked: set[Path] = set()


def rewrite(app: Any, page: str, source: list[str]) -> None:
    """Makes links of this page lead to copies. Raises `ValueError` for a file that does not exist."""
    here = Path(page).parent
    parts = _CODE.split(source[0])
    # Every second part is a block of code.
    parts[::2] = [_LINK.sub(lambda match: _link(app, here, match), part) for part in parts[::2]]
    source[0] = "".join(parts)


def _link(app: Any, here: Path, match: re.Match[str]) -> str:
    text, target, place = match[1], match[2], match[3] or ""
    file = Path(os.path.normpath(DOCS / here / target)) if target else None
    if file is not None and file.suffix == ".md" and file.is_relative_to(DOCS):
        if place and f'<a id="{place[1:]}">' in file.read_text(encoding="utf-8"):
            return f'<a href="{Path(target).with_suffix(".html")}{place}">{text}</a>'
        return match[0]
    if file is None:
        marked = f'<a id="{place[1:]}">' in (DOCS / app.env.doc2path(app.env.docname)).read_text("utf-8")
        return f'<a href="{place}">{text}</a>' if marked else match[0]
    if not file.exists():
        raise ValueError(f"{here}: a link to {target}, which does not exist")
    _linked.add(file)
    copied = os.path.relpath(_copy_of(file), here)
    return f'<a href="{copied}">{text}</a>'


def _copy_of(file: Path) -> str:
    return f"source/{file.relative_to(ROOT)}.txt"


def copy(app: Any, error: Exception | None) -> None:
    """Copies the linked files, and the lab if it was built."""
    if error is not None:
        return
    for file in sorted(_linked):
        copied = Path(app.outdir, _copy_of(file))
        copied.parent.mkdir(parents=True, exist_ok=True)
        if file.is_dir():
            names = sorted(one.name for one in file.iterdir() if not one.name.startswith((".", "_")))
            copied.write_text("\n".join(names) + "\n", encoding="utf-8")
        else:
            shutil.copyfile(file, copied)
    if lab_is_built():
        shutil.copytree(LAB, Path(app.outdir, "lab"), dirs_exist_ok=True)


def lab_is_built() -> bool:
    """Whether `make lab` was called."""
    return (LAB / "index.html").is_file()


def lab(folder: str) -> str:
    """The lab in a frame, or how to get it."""
    if not lab_is_built():
        return "The lab was not built when this site was: call `make lab` and then `make docs`."
    address = html.escape(f"{folder}lab/index.html")
    return (
        f'<iframe class="lab" src="{address}" title="The lab"></iframe>\n\n'
        f'<a href="{address}">The lab on a page of its own.</a> Browsers run it only from a web server: '
        "`python -m http.server --directory out/docs`."
    )
