"""Runs `fullpipe` as a user does, in a process of its own, without a second of imports each time.

A program that has imported what commands import waits for commands, and forks for each. The process gets
the environment, the working directory and the streams that one started here would have.
"""

import atexit
import functools
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

# What a process inherits and a command does not bring along.
Inherited = tuple[Any, ...]


def run(*words: str, env: dict[str, str], limit_s: float) -> "subprocess.CompletedProcess[str]":
    """What `fullpipe` gives for these words and no input."""
    program, inherited, modules = _program()
    wording = ["fullpipe", *words]
    if inherited != _inherited() or modules != _modules(env):
        started = [sys.executable, "-m", *wording]
        return subprocess.run(
            started,
            capture_output=True,
            text=True,
            timeout=limit_s,
            env=env,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    with Path(os.devnull).open() as nothing, _text() as out, _text() as err:
        asked = {"words": words, "cwd": str(Path.cwd()), "env": env}
        streams = [one.fileno() for one in (nothing, out, err)]
        socket.send_fds(program, [json.dumps(asked).encode()], streams)
        child = int(program.recv(100))
        program.settimeout(limit_s)
        try:
            code = int(program.recv(100))
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            raise subprocess.TimeoutExpired(wording, limit_s) from None
        finally:
            program.settimeout(None)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(wording, code, out.read(), err.read())


def _text() -> IO[str]:
    return tempfile.TemporaryFile("w+", encoding="utf-8")


@functools.cache
def _program() -> tuple[socket.socket, Inherited, dict[str, str]]:
    """The program's socket, and what it inherited."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        started = [sys.executable, __file__, str(theirs.fileno())]
        running = subprocess.Popen(started, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    # It ends when nobody can send commands any more.
    atexit.register(running.wait)
    atexit.register(ours.close)
    return ours, _inherited(), _modules(os.environ)


def _inherited() -> Inherited:
    limits = (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_AS)
    network = Path("/proc/thread-self/ns/net")
    return (
        [resource.getrlimit(one) for one in limits],
        signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        os.readlink(network) if network.exists() else None,  # noqa: PTH115
    )


def _modules(env: Any) -> dict[str, str]:
    """What the environment says of the interpreter itself."""
    return {name: value for name, value in env.items() if name.startswith("PYTHON")}


def main(number: int) -> None:
    """Forks for each command that comes, until there is no one to send any."""
    del sys.path[0]  # The folder of the tests.
    import altair  # noqa: F401
    import polars  # noqa: F401

    from fullpipe import __main__
    from fullpipe.cli import app  # noqa: F401

    tests = socket.socket(fileno=number)
    while True:
        message, streams, _, _ = socket.recv_fds(tests, 1 << 20, 3)
        if not message:
            return
        if (child := os.fork()) == 0:
            tests.close()
            asked = json.loads(message)
            for stream, one in enumerate(streams):
                os.dup2(one, stream)
                os.close(one)
            os.environ.clear()
            os.environ.update(asked["env"])
            os.chdir(asked["cwd"])
            sys.argv = [__main__.__file__, *asked["words"]]
            sys.path.insert(0, asked["cwd"])
            __main__.main()
        for one in streams:
            os.close(one)
        tests.send(str(child).encode())
        _, status = os.waitpid(child, 0)
        tests.send(str(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    main(int(sys.argv[1]))
