"""Flows that are programs: what a scenario says of one, and the consent to run the commands of a file."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe.errors import stated


@dataclass(frozen=True)
class Program:
    """A program to compare: the command lines of its client and its server, for `/bin/sh`.

    `{server}` in them is the server's address, and `{port}` a port of the flow's own. `sender` is the side
    that sends the data: "client" or "server". Only the kernel world runs programs, and measures packets.
    `label` is the name in results; by default the first word of `client`.
    """

    client: str
    server: str
    sender: str = "client"
    label: str | None = None

    def document(self) -> dict[str, Any]:
        """The same as a scenario writes it under `compare`."""
        message = {"client": self.client, "server": self.server, "sender": self.sender, "label": self.label}
        return {key: value for key, value in message.items() if value is not None}


def written(compared: Any) -> Any:
    """The list under `compare` with each `Program` as a scenario writes it."""
    if not isinstance(compared, list | tuple):
        return compared
    return [one.document() if isinstance(one, Program) else one for one in compared]


def first(spec_json: str) -> tuple[str, str] | None:
    """The field and the client of the first flow of a spec that is a program."""
    # A spec may have tens of thousands of flows.
    if '"program"' not in spec_json:
        return None
    for index, flow in enumerate(json.loads(spec_json)["flows"]):
        if program := flow.get("program"):
            return f"flows[{index}].client", str(program["client"])
    return None


def refused(spec_json: str, place: str) -> str | None:
    """Why a world that runs no programs, named `place`, cannot run a spec: a sentence with a fix."""
    if (found := first(spec_json)) is None:
        return None
    field, client = found
    return (
        f"{field}: {json.dumps(client)} is a program, which the {place} does not run; expected a controller; "
        "run it in the kernel world (--world kernel)"
    )


def check_consent(pairs: Sequence[tuple[str, str]], path: object = None) -> None:
    """Raises an error if a spec has a program: its commands are the choice of the scenario's author.

    `path` is the scenario's file. Without it there is no option that allows it.
    """
    for _, spec in pairs:
        if (found := first(spec)) is None:
            continue
        field, client = found
        if path is None:
            before, fix = "", "choose a controller, or run the program alone with `fullpipe run`"
        else:
            before = f"{path}: "
            fix = "read it, and give `fullpipe run` the option --allow-programs"
            fix += " (in Python: fullpipe.load(..., programs=True))"
        why = "is a program, which the author of this scenario chose"
        sentence = f"{before}{field}: {json.dumps(client)} {why}; {fix}"
        raise stated(field, client, sentence, "consent to run it", fix)
