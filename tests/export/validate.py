"""Validates qlogs of ours against the published schemas, by hand.

    git clone https://github.com/quicwg/qlog
    git clone https://github.com/quicwg/qlog older
    git -C older checkout draft-ietf-quic-qlog-quic-events-02
    git -C older checkout draft-ietf-quic-qlog-main-schema-03 -- draft-ietf-quic-qlog-main-schema.md
    pip install pycddl cbor2
    python tests/export/validate.py qlog older FILE.sqlog... FILE.qlog...

The schemas are CDDL within the drafts' Markdown; `tcp.cddl` beside this file has what we add to the current
form. Each event is validated against the very type of its name. The last result is in docs/how-to/export.md.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cbor2
import pycddl

OURS = Path(__file__).parent / "tcp.cddl"
CURRENT = {
    "quic:packet_sent": "QUICPacketSent",
    "quic:packet_received": "QUICPacketReceived",
    "quic:packet_lost": "QUICPacketLost",
    "quic:recovery_metrics_updated": "QUICRecoveryMetricsUpdated",
    "quic:recovery_parameters_set": "QUICRecoveryParametersSet",
    "quic:congestion_state_updated": "QUICCongestionStateUpdated",
    "loglevel:warning": "LogLevelWarning",
    "path:packet_arrived": "PathPacketArrived",
    "path:packet_dropped": "PathPacketDropped",
}
OLDER = {
    "transport:packet_sent": "TransportPacketSent",
    "transport:packet_received": "TransportPacketReceived",
    "recovery:packet_lost": "RecoveryPacketLost",
    "recovery:metrics_updated": "RecoveryMetricsUpdated",
    "recovery:parameters_set": "RecoveryParametersSet",
    "recovery:congestion_state_updated": "RecoveryCongestionStateUpdated",
    "generic:warning": "GenericWarning",
}
FRAMES = {
    "padding": "PaddingFrame",
    "ping": "PingFrame",
    "ack": "AckFrame",
    "reset_stream": "ResetStreamFrame",
    "stop_sending": "StopSendingFrame",
    "crypto": "CryptoFrame",
    "stream": "StreamFrame",
    "max_data": "MaxDataFrame",
    "max_stream_data": "MaxStreamDataFrame",
    "max_streams": "MaxStreamsFrame",
    "data_blocked": "DataBlockedFrame",
    "stream_data_blocked": "StreamDataBlockedFrame",
    "streams_blocked": "StreamsBlockedFrame",
    "new_connection_id": "NewConnectionIDFrame",
    "retire_connection_id": "RetireConnectionIDFrame",
    "path_challenge": "PathChallengeFrame",
    "path_response": "PathResponseFrame",
    "connection_close": "ConnectionCloseFrame",
    "handshake_done": "HandshakeDoneFrame",
    "unknown": "UnknownFrame",
}
# `time` without quotes is a type to pycddl.
EVENT = 'Root = {{ "time": (int / float), name: {name}, group_id: text, data: {type} }}\n'


class Form:
    """A form of qlog: the schemas of its head, its events and their frames."""

    def __init__(self, cddl: str, head: str, types: dict[str, str]) -> None:
        self.head = pycddl.Schema(f"Root = {head}\n{cddl}")
        self.events = {
            name: pycddl.Schema(EVENT.format(name=json.dumps(name), type=kind) + cddl)
            for name, kind in types.items()
        }
        self.frames = {name: pycddl.Schema(f"Root = {kind}\n{cddl}") for name, kind in FRAMES.items()}

    def wrong(self, head: Any, events: list[Any]) -> Iterator[tuple[Any, str]]:
        """What is invalid, and why."""
        parts = [(self.head, head)]
        for event in events:
            # One by one, because pycddl takes only the first choice of a list's elements.
            frames = event["data"].get("frames", [])
            parts += [(self.frames[frame["frame_type"]], frame) for frame in frames]
            data = event["data"] | ({"frames": []} if frames else {})
            parts.append((self.events[event["name"]], event | {"data": data}))
        for schema, part in parts:
            try:
                schema.validate_cbor(cbor2.dumps(part))
            except pycddl.ValidationError as error:
                yield part, str(error)


def published(folder: Path, ours: str = "") -> str:
    """The CDDL of both drafts, and ours, as pycddl takes it."""
    drafts = ("draft-ietf-quic-qlog-main-schema.md", "draft-ietf-quic-qlog-quic-events.md")
    texts = [(folder / name).read_text() for name in drafts]
    blocks = [re.findall(r"^~~~ *cddl\n(.*?)^~~~", text, re.DOTALL | re.MULTILINE) for text in texts]
    text = "\n".join([*blocks[0], *blocks[1], ours])
    # pycddl does not unwrap.
    for log_file in re.findall(r"^LogFile = \{(.*?)\}", text, re.DOTALL | re.MULTILINE):
        text = text.replace("~LogFile", log_file)
    # JSON has one kind of number (RFC 8610 appendix E); pycddl's `number` has no fractions.
    text = re.sub(r"\bfloat(32|64)\b", "(int / float)", text)
    for socket, fields in re.findall(r"^(\$\$\S+) //= \((.*?)\)$", text, re.DOTALL | re.MULTILINE):
        text = text.replace(f"* {socket}\n", f"{fields}\n")
    text = re.sub(r"^\$\$\S+ //= \(.*?\)$", "", text, flags=re.DOTALL | re.MULTILINE)
    # Nothing else extends them.
    return re.sub(r"^ *\* \$\$.*\n", "", text, flags=re.MULTILINE)


def main() -> int:
    """Validates each file; returns 1 if something is invalid."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("current", "older"):
        parser.add_argument(name, type=Path, help=f"folder with the drafts of the {name} form")
    parser.add_argument("files", type=Path, nargs="+")
    arguments = parser.parse_args()
    ours = OURS.read_text()
    current = Form(published(arguments.current, ours), "QlogFileSeq", CURRENT)
    # Logs of real QUIC have no extension for TCP.
    without_tcp = re.sub(r"^\$\$\S+ //= \(.*?\)$", "", ours, flags=re.DOTALL | re.MULTILINE)
    quic = Form(published(arguments.current, without_tcp), "QlogFileSeq", CURRENT)
    older = Form(published(arguments.older), "Trace", OLDER)
    invalid = 0
    for path in arguments.files:
        if path.suffix == ".sqlog":
            head, *events = [json.loads(one) for one in path.read_text().split("\x1e")[1:]]
            form = current if any("#tcp" in one for one in head["trace"]["event_schemas"]) else quic
        else:
            # The file around the trace has a version, a format and a title.
            (head,) = json.loads(path.read_text())["traces"]
            form, events = older, head.pop("events")
            head["events"] = []
        for part, why in form.wrong(head, events):
            invalid += 1
            print(f"{path}: {json.dumps(part)[:300]}: {why}", file=sys.stderr)
        counts = sorted(Counter(event["name"] for event in events).items())
        print(f"{path}: {len(events)} events: {', '.join(f'{name} {count}' for name, count in counts)}")
    print(f"{invalid} invalid")
    return min(invalid, 1)


if __name__ == "__main__":
    sys.exit(main())
