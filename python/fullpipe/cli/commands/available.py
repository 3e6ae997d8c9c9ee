"""`fullpipe controllers`, `queues`, `schema` and `doctor`: what is available."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from fullpipe.cli.options import AsJson, complete_controllers, complete_queues, console
from fullpipe.errors import mistake

Controllers = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="CC...", help="Only these.", show_default="all", autocompletion=complete_controllers
    ),
]
Queues = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="QUEUE...", help="Only these.", show_default="all", autocompletion=complete_queues
    ),
]


def controllers(names: Controllers = None, as_json: AsJson = False) -> None:
    """List the congestion controllers and their parameters."""
    from fullpipe import api
    from fullpipe.report import tables

    found = _named(api.controllers(), names, "controller")
    if as_json:
        print(json.dumps(found, indent=2))
        return
    console().print(tables.controllers(found))


def queues(names: Queues = None, as_json: AsJson = False) -> None:
    """List the queue disciplines and their settings."""
    from fullpipe import api
    from fullpipe.report import tables

    found = _named(api.queues(), names, "queue")
    if as_json:
        print(json.dumps(found, indent=2))
        return
    console().print(tables.queues(found))


def _named(every: Sequence[dict[str, Any]], names: Sequence[str] | None, kind: str) -> list[dict[str, Any]]:
    """Those of the names, in their order; all without names. Parameters after a name do not matter."""
    if not names:
        return list(every)
    from fullpipe.runs.worlds import registry
    from fullpipe.scenario.controllers import is_of_stack

    by_name = {one["name"]: one for one in every}
    wanted = [name if is_of_stack(name) else name.partition(":")[0] for name in names]
    for name in wanted:
        if name not in by_name and is_of_stack(name):
            registry.named("quic").ready()  # It may lack its program.
        if name not in by_name:
            raise mistake(kind, name, f"one of {', '.join(by_name)}", "choose one of these")
    return [by_name[name] for name in wanted]


def schema() -> None:
    """Print the JSON Schema of a scenario."""
    from fullpipe import api

    print(json.dumps(api.schema(), indent=2))


def doctor(as_json: AsJson = False) -> None:
    """Report what this machine can do, what is missing, and how to fix it."""
    from dataclasses import asdict

    from fullpipe.report import tables
    from fullpipe.runs import doctor as examination

    found = examination.requirements()
    if as_json:
        print(json.dumps([asdict(one) for one in found], indent=2))
        return
    console().print(tables.diagnosis(found))
