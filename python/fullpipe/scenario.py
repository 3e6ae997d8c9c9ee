"""What is to be run: a document as the user wrote it, resolved into one numeric spec an alternative.

A document has one shape, in TOML and as a Python dict: name, duration, path, hosts, flows, compare, record.
The native half checks and resolves it; nothing here interprets a unit.
"""

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from fullpipe import _native
from fullpipe.errors import mistake

Document: TypeAlias = Mapping[str, Any]
Amount: TypeAlias = str | int | float


@dataclass(frozen=True)
class Alternative:
    """One of the things a scenario compares, in numbers."""

    label: str
    spec_json: str

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The spec as Python values."""
        loaded: dict[str, Any] = json.loads(self.spec_json)
        return loaded

    @cached_property
    def digest(self) -> str:
        """A hash of all that its runs depend on: not the name, nor the seed, which whoever runs it replaces.

        Found once for all seeds, because a spec may have tens of thousands of flows.
        """
        decisive = {name: value for name, value in self.spec.items() if name not in ("name", "seed")}
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()

    @property
    def duration_s(self) -> float:
        """How long one run lasts."""
        return float(self.spec["duration_ns"]) / 1e9


@dataclass(frozen=True)
class Scenario:
    """A document as text and what it resolved to: one alternative or more."""

    text: str
    form: str  # "toml" or "json".
    alternatives: tuple[Alternative, ...]

    @property
    def name(self) -> str:
        """What the document calls itself."""
        return str(self.alternatives[0].spec["name"])

    @property
    def seed(self) -> int:
        """The document's seed; several seeds count upwards from it."""
        return int(self.alternatives[0].spec["seed"])

    @cached_property
    def document(self) -> dict[str, Any]:
        """The document in the user's own words, to be shown. What it means is in the specs."""
        loaded: dict[str, Any] = tomllib.loads(self.text) if self.form == "toml" else json.loads(self.text)
        return loaded


def from_file(path: str | Path) -> Scenario:
    """Reads a scenario in TOML (or JSON, by its suffix). Traces are looked up beside it."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise mistake(
            "scenario", str(path), "a readable scenario file", f"{reason}: check the path and permissions"
        ) from None
    form = "json" if path.suffix.lower() == ".json" else "toml"
    return _resolve(text, form, path.parent)


def from_document(document: Document, base_dir: str | Path | None = None) -> Scenario:
    """Takes a scenario as a dict of the same shape as the TOML."""
    return _resolve(_to_json(document), "json", base_dir)


def comparison(
    controllers: str | Sequence[str],
    *,
    rate: Amount,
    rtt: Amount,
    buffer: Amount = "1 bdp",
    loss: Amount | None = None,
    duration: Amount | None = None,
    flows: int = 1,
) -> Scenario:
    """The scenario that puts each controller alone on one path, with `flows` flows of it at a time."""
    if isinstance(controllers, str):
        controllers = [controllers]
    if not controllers:
        raise mistake("controllers", "none", "at least one controller", "name some, e.g. bbr1 cubic")
    if isinstance(flows, bool) or flows < 1:
        raise mistake("flows", flows, "a whole number from 1", "give how many flows share the path")
    return from_document(
        {
            "name": "compare",
            "duration": duration if duration is not None else "20 s",
            **path_document(rate=rate, rtt=rtt, buffer=buffer, loss=loss),
            "flows": [{"count": flows}] if flows > 1 else [{}],
            "compare": list(controllers),
        }
    )


def path_document(
    *,
    rate: Amount | None,
    rtt: Amount,
    buffer: Amount | None = None,
    loss: Amount | None = None,
    trace: str | None = None,
) -> dict[str, Any]:
    """The `path` table of a document; what is None is left to its default."""
    said = {"rate": rate, "rtt": rtt, "buffer": buffer, "loss": loss, "trace": trace}
    return {"path": {key: value for key, value in said.items() if value is not None}}


def _resolve(text: str, form: str, base_dir: str | Path | None) -> Scenario:
    pairs = _native.resolve(text, form, None if base_dir is None else str(base_dir))
    return Scenario(text, form, tuple(Alternative(label, spec) for label, spec in pairs))


def _to_json(document: Document) -> str:
    try:
        return json.dumps(document, allow_nan=False)
    except (TypeError, ValueError):
        pass  # A mapping that is no dict, or no finite number: more work, and seldom.
    try:
        return json.dumps(_finite(document), allow_nan=False)
    except TypeError as error:
        raise mistake("scenario", document, "text, numbers, lists and tables", str(error)) from None


def _finite(value: Any) -> Any:
    """NaN and infinities as words: JSON cannot say them, and the native half knows their field."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
