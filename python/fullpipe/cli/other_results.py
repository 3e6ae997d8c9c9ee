"""Whose results an output folder holds, so that no command mixes its own with those of another.

A folder is recognised by the files that each command writes. Nothing in it is changed or removed.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fullpipe.text import joined


@dataclass(frozen=True)
class Kind:
    """Results of one kind: the file that shows them, and what in it they are of."""

    file: str
    of: Callable[[Any], object]
    message: Callable[[Any], str]


def _scenario(document: Any) -> str:
    if document["name"] == "compare":
        return f"the comparison of {joined(document['compare'])}"
    return f"the scenario {document['name']}"


SCENARIO = Kind("scenario.json", lambda message: message, _scenario)
STUDY = Kind("claims.json", lambda message: message["paper"], lambda message: f"the study {message['paper']}")
GRID = Kind("grid.json", lambda message: message["grid"], lambda message: f"the grid {message['grid']}")
CHECK = Kind("check.json", lambda _message: "check", lambda _message: "`fullpipe kernel check`")
CONFORMITY = Kind(
    "conformance.json",
    lambda message: message["controller"],
    lambda message: f"the conformance of {message['controller']}",
)
GATE = Kind("gate.json", lambda _message: "gate", lambda _message: "`fullpipe gate`")
MAP = Kind("map.json", lambda _message: "map", lambda _message: "`fullpipe map`")
ANSWERS = Kind("answers.json", lambda _message: "answers", lambda _message: "`fullpipe advise`")
EVALUATION = Kind(
    "evaluation.json",
    lambda message: message["controller"],
    lambda message: f"the evaluation of {message['controller']}",
)
ADVICE = Kind("advice.json", lambda _message: "advice", lambda _message: "`fullpipe kernel advice`")
PLAN = Kind("analysis.json", lambda _message: "plan", lambda _message: "`fullpipe plan analyse`")
PROBE = Kind("probe.json", lambda _message: "probe", lambda _message: "`fullpipe probe`")
# Kinds whose runs are kept in a store, which an interrupted command leaves without results.
_STORED = (STUDY, GRID, MAP, ADVICE, EVALUATION)


def refuse_others(folder: Path, kind: Kind, of: Callable[[], object]) -> None:
    """Raises `ScenarioError` if a folder holds results of another kind, or of something else than `of`.

    `of` is called only if there are results of that kind. Its value is of plain types.
    """
    from fullpipe.errors import stated

    if (other := _other(folder, kind, of)) is not None:
        fix = "name another folder"
        sentence = f'out: "{folder}" holds results of {other}; {fix}'
        raise stated("out", str(folder), sentence, "a folder without results of another command", fix)


def _other(folder: Path, kind: Kind, of: Callable[[], object]) -> str | None:
    """The other command's results in a folder, in words; None if there are none."""
    for one in (SCENARIO, STUDY, GRID, CHECK, CONFORMITY, MAP, ANSWERS, ADVICE, EVALUATION, PLAN, PROBE):
        path = folder / one.file
        if not path.is_file():
            continue
        try:
            message = json.loads(path.read_text(encoding="utf-8"))
            same, name = one.of(message), one.message(message)
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            # Damaged: the same kind of command repairs it.
            same, name = None, f"another command ({one.file})"
        if one is kind and same in (None, of()):
            return None
        return name
    if (folder / "report.html").is_file() and (folder / "runs").is_dir():
        return "another command (report.html)"
    if kind not in _STORED and (folder / "log.jsonl").is_file():
        return "an unfinished study or grid"
    return None
