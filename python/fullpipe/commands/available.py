"""`fullpipe controllers`, `queues`, `schema` and `doctor`: what is available."""

import json

from fullpipe.commands._common import (
    AsJson,
    console,
)


def controllers(as_json: AsJson = False) -> None:
    """List the congestion controllers and their parameters."""
    from fullpipe import api
    from fullpipe.show import tables

    if as_json:
        print(json.dumps(api.controllers(), indent=2))
        return
    console().print(tables.controllers(api.controllers()))


def queues(as_json: AsJson = False) -> None:
    """List the queue disciplines and their settings."""
    from fullpipe import api
    from fullpipe.show import tables

    if as_json:
        print(json.dumps(api.queues(), indent=2))
        return
    console().print(tables.queues(api.queues()))


def schema() -> None:
    """Print the JSON Schema of a scenario."""
    from fullpipe import api

    print(json.dumps(api.schema(), indent=2))


def doctor(as_json: AsJson = False) -> None:
    """Report what this machine can do, what is missing, and how to fix it."""
    from dataclasses import asdict

    from fullpipe.judge import doctor as examination
    from fullpipe.show import tables

    found = examination.requirements()
    if as_json:
        print(json.dumps([asdict(one) for one in found], indent=2))
        return
    console().print(tables.diagnosis(found))
