"""`fullpipe shell`: the command line replaces itself by this fresh process, which enters namespaces.

Arguments: one JSON object with spec, command and server.
"""

import json
import os
import signal
import sys


def main() -> int:
    """Runs the command behind the path and returns its exit code."""
    import fullpipe._native as _native

    request = json.loads(sys.argv[1])
    # An interrupt that came earlier is handled here.
    signal.signal(signal.SIGINT, _leave)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        return _native.shell(request["spec"], request["command"], request["server"])
    except (_native.ScenarioError, _native.WorldError) as error:
        from fullpipe.text import MOST_SENTENCE, shown

        print(f"fullpipe: {shown(str(error), MOST_SENTENCE)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _leave(_number: int, _frame: object) -> None:
    os.write(2, b"fullpipe: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
