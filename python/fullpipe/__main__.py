"""The command `fullpipe`, also as `python -m fullpipe`. An interrupt is one line and exit code 130."""

import os
import sys

INTERRUPTED = 130


def main() -> None:
    """What the command `fullpipe` runs."""
    try:
        # Here, because an interrupt may also come while it is imported.
        from fullpipe import cli

        code = cli.app(standalone_mode=False)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code != INTERRUPTED:
        sys.exit(code)
    print("fullpipe: interrupted", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    # CPython remembers a KeyboardInterrupt that went through `exec` (dataclasses, named tuples), handled or
    # not, and would end this process by signal whatever exit code it is given.
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
