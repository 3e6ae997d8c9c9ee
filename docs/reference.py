"""The parts of the reference that are made from the code when the site is built.

A page has a line such as `<!-- commands -->`, in whose place the text comes.
"""

import inspect
import json
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sources

ROOT = Path(__file__).resolve().parent.parent


def insert(app: Any, page: str, source: list[str]) -> None:
    """Puts what is made from the code in the place of its marks."""
    for mark, made in PARTS.items():
        line = f"<!-- {mark} -->\n"
        if line in source[0]:
            source[0] = source[0].replace(line, made() + "\n")
    if page == "reference/gallery":
        import tables

        source[0] = tables.figures(ROOT / "results")
    if page == "index":
        source[0] += contents(source[0])


def contents(index: str) -> str:
    """The tables of contents for the sidebar: the pages that each section of the index links to."""
    parts = []
    for section in index.split("\n## ")[1:]:
        caption = section.partition("\n")[0].partition(":")[0]
        pages = dict.fromkeys(re.findall(r"\]\(([\w/-]+)\.md\)", section))
        lines = "\n".join(pages)
        parts.append(f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{lines}\n```\n")
    return "".join(parts)


def escaped(text: str) -> str:
    """Text as Markdown that shows it as it is; what is between backquotes is code."""
    pieces = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(
        one if one.startswith("`") else re.sub(r"([\\*_<>\[\]$|#~])", r"\\\1", one) for one in pieces
    )


def paragraphs(text: str | None) -> str:
    """A help text or docstring, one line for each paragraph."""
    return "\n\n".join(escaped(one) for one in inspect.cleandoc(text or "").split("\n\n") if one.strip())


def terms(rows: Mapping[str, str]) -> str:
    """A list of definitions."""
    return "\n".join(f"{name}\n: {text or '–'}\n" for name, text in rows.items())


# ---- commands ----


def commands() -> str:
    """Every command of `fullpipe` with its arguments and options."""
    import typer

    from fullpipe.cli import app

    group = typer.main.get_command(app.app)
    return "\n".join(_commands(group, "fullpipe", typer.Context))


def _commands(group: Any, name: str, context: Callable[..., Any]) -> Iterator[str]:
    for word, command in sorted(group.commands.items()):
        called = f"{name} {word}"
        if hasattr(command, "commands"):
            yield f"## {called}\n\n{paragraphs(command.help)}\n"
            yield from _commands(command, called, context)
            continue
        here = context(command, info_name=called)
        pieces = " ".join(command.collect_usage_pieces(here))
        yield f"## {called}\n\n```text\n{called} {pieces}\n```\n\n{paragraphs(command.help)}\n"
        rows = {}
        for one in command.get_params(here):
            found = one.get_help_record(here)
            if found is not None:
                rows[f"`{found[0]}`"] = escaped(found[1].replace("  [", " ["))
        yield terms(rows)


# ---- scenarios ----

_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minItems": "at least {} of them",
    "maxItems": "at most {} of them",
    "maxLength": "at most {} characters",
}


def scenarios() -> str:
    """Every key of a scenario: type, bounds, default, description."""
    from fullpipe import api

    schema = api.schema()
    parts = [f"## A scenario\n\n{_keys(schema)}"]
    for name, one in sorted(schema["$defs"].items()):
        parts.append(f"## {name}\n\n{escaped(one.get('description', ''))}\n\n{_body(one)}")
    return "\n".join(parts)


def _body(schema: Mapping[str, Any]) -> str:
    if "properties" in schema:
        return _keys(schema)
    if "oneOf" in schema or "anyOf" in schema:
        return "\n".join(_choice(one) for one in schema.get("oneOf", schema.get("anyOf", ())))
    return f"{_type(schema)}.\n"


def _choice(schema: Mapping[str, Any]) -> str:
    """One of several forms of a value."""
    text = escaped(schema.get("description", ""))
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`\n: {text or '–'}\n"
    kind = schema.get("properties", {}).get("kind", {}).get("const")
    if kind is not None:
        return f"### kind = `{kind}`\n\n{text}\n\n{_keys(schema)}"
    if "properties" in schema:
        return f"{text}\n\n{_keys(schema)}"
    return f"{_type(schema)}\n: {text or '–'}\n"


def _keys(schema: Mapping[str, Any]) -> str:
    rows = {}
    required = set(schema.get("required", ()))
    for key, one in schema.get("properties", {}).items():
        if key == "kind" and "const" in one:
            continue
        rows[f"`{key}` – {_type(one)}{', required' if key in required else ''}"] = _inner(one)
    return terms(rows)


def _inner(schema: Mapping[str, Any]) -> str:
    """The description, and the keys of a table that has no name of its own."""
    text = escaped(schema.get("description", ""))
    if "properties" in schema:
        return f"{text}\n\n{textwrap.indent(_keys(schema), '  ')}"
    return text


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "properties" in schema:
        return "table"
    choices = [one for one in schema.get("anyOf", schema.get("oneOf", ())) if one.get("type") != "null"]
    if choices:
        return " or ".join(dict.fromkeys(_type(one) for one in choices))
    kinds = schema.get("type", [])
    kinds = [one for one in ([kinds] if isinstance(kinds, str) else kinds) if one != "null"]
    if kinds == ["array"]:
        return f"list of {_type(schema.get('items', {}))}{_limits(schema)}"
    name = " or ".join({"object": "table"}.get(one, one) for one in kinds) or "any value"
    examples = ", ".join(f"`{json.dumps(one, ensure_ascii=False)}`" for one in schema.get("examples", ()))
    return f"{name}{_limits(schema)}{f', e.g. {examples}' if examples else ''}"


def _limits(schema: Mapping[str, Any]) -> str:
    found = [text.format(schema[key]) for key, text in _BOUNDS.items() if key in schema]
    found += [f"one of {', '.join(f'`{one}`' for one in schema['enum'])}"] if "enum" in schema else []
    return "".join(f", {one}" for one in found)


# ---- Python ----


def python() -> str:
    """What `fullpipe` exports."""
    import fullpipe

    parts = []
    for name in (one for one in fullpipe.__all__ if one != "__version__"):
        thing = getattr(fullpipe, name)
        kind = "function"
        if inspect.isclass(thing):
            kind = "exception" if issubclass(thing, BaseException) else "class"
        members = "   :members:\n" if kind == "class" else ""
        parts.append(
            f"## {name}\n\n```{{eval-rst}}\n.. currentmodule:: fullpipe\n\n"
            f".. auto{kind}:: fullpipe.{name}\n{members}```\n"
        )
    return "\n".join(parts)


# ---- crates ----


def crates() -> str:
    """What each crate is for, by its Cargo.toml."""
    rows = {}
    for file in [*sorted(ROOT.glob("crates/*/Cargo.toml")), *sorted(ROOT.glob("quic/*/Cargo.toml"))]:
        package = tomllib.loads(file.read_text(encoding="utf-8"))["package"]
        folder = file.parent.relative_to(ROOT)
        rows[f"`{package['name']}` in `{folder}`"] = escaped(package.get("description", ""))
    return terms(rows)


# ---- the notebook ----


def notebook() -> str:
    """The cells of the notebook, without what they print."""
    file = ROOT / "docs" / "tutorials" / "notebook.ipynb"
    parts = []
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code":
            parts.append(f"```python\n{text}\n```\n")
        elif not text.startswith("# "):
            parts.append(f"{text}\n")
        else:
            parts.append(f"{text.partition(chr(10))[2].strip()}\n")
    return "\n".join(parts)


# ---- cases ----


def cases() -> str:
    """Every case: what it does, its criteria with their sources, and who fails by design."""
    from fullpipe.conformance import registry
    from fullpipe.conformance.programs import registry as programs

    parts = ["## For controllers\n", *map(_case, registry.every())]
    parts += ["## For programs\n", *map(_case, programs.every())]
    return "\n".join(parts)


def loss_cases() -> str:
    """The cases of loss-based controllers, what ours do in each, and what was replaced."""
    import fullpipe as fp
    from fullpipe.conformance.loss import registry, replaced

    names = ("cubic9438", "newreno", "cubic", "reno")
    found = [fp.conform(name, suite="loss") for name in names]
    marks = {"pass": "pass", "fail": "**fail**", "not applicable": "–"}
    rows = [
        (
            f"[{case.name}](#{case.name})",
            escaped(case.title),
            *(marks[of.results[at].verdict] for of in found),
        )
        for at, case in enumerate(registry.every())
    ]
    parts = [
        "## For loss-based controllers\n",
        _table(("case", "what it shows", *names), rows),
        "\n".join(f"- {escaped(of.summary)}" for of in found) + "\n",
        *map(_case, registry.every()),
        "### Replaced criteria and set-ups\n",
        _table(("case", "before", "now", "why"), [tuple(map(escaped, one)) for one in replaced.REPLACED]),
    ]
    return "\n".join(parts)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


_NEEDS = {"cubic": "CUBIC", "reno": "Reno", "hystartpp": "HyStart++", "prr": "PRR"}


def _case(one: Any) -> str:
    like = {"bbr3": " For BBRv3.", "cubic": " For CUBIC.", "reno": " For Reno."}.get(
        getattr(one, "like", ""), ""
    )
    needs = [_NEEDS[word] for word in getattr(one, "needs", ()) if word in _NEEDS]
    like += f" For {' with '.join(needs)}." if needs else ""
    seeds = f" {len(one.seeds)} seeds." if len(one.seeds) > 1 else ""
    lines = [
        f"### {one.name}\n",
        f"{escaped(one.title)}. {escaped(one.about)}{like}{seeds} Source: {escaped(one.source)}.\n",
    ]
    for each in one.criteria:
        bounds = "" if each.is_whether else f": {each.bounds}"
        lines.append(f"- {escaped(each.quantity + bounds)} ({escaped(each.source)})")
    lines += [f"- {name} fails by design: {escaped(why)}" for name, why in one.failed_by.items()]
    lines += [f"- {name} differs: {escaped(why)}" for name, why in one.differs.items()]
    return "\n".join(lines) + "\n"


# ---- measured ----


def measured(name: str) -> Callable[[], str]:
    """A table of docs/tables.py that only the site has, by the name of its function there."""

    def made() -> str:
        import tables

        return str(getattr(tables, name)(ROOT / "results"))

    return made


PARTS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "scenarios": scenarios,
    "python": python,
    "crates": crates,
    "every-case": cases,
    "loss-cases": loss_cases,
    **{
        name: measured(name.replace("-", "_"))
        for name in ("grids", "thin-ways", "advice", "quic-cases", "programs-cases", "reasons", "evaluations")
    },
    "notebook": notebook,
    "lab": lambda: sources.lab("../"),
}
