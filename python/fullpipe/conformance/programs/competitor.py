"""Linux's CUBIC as a program, beside one that is judged. Run by its file, it needs no package.

python competitor.py receive PORT
python competitor.py send HOST PORT
"""

import shlex
import socket
import sys

# In Linux; Python has the name only where its own build found it.
_TCP_CONGESTION = 13
_CHUNK = bytes(1 << 16)


def flow(label: str) -> dict[str, str]:
    """The table of a scenario's flow."""
    command = f"{shlex.quote(sys.executable)} -P {shlex.quote(__file__)}"
    return {
        "client": f"{command} send {{server}} {{port}}",
        "server": f"{command} receive {{port}}",
        "sender": "client",
        "label": label,
    }


def send(host: str, port: int) -> None:
    """Sends until it is ended."""
    with socket.socket() as link:
        link.setsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, b"cubic")
        link.connect((host, port))
        while True:
            link.sendall(_CHUNK)


def receive(port: int) -> None:
    """Receives from one sender until that ends."""
    with socket.create_server(("", port)) as door:
        link, _ = door.accept()
        with link:
            while link.recv(len(_CHUNK)):
                pass


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(sys.argv[2], int(sys.argv[3]))
    else:
        receive(int(sys.argv[2]))
