"""Validates qlogs of ours against the published schemas, by hand.

    git clone https://github.com/quicwg/qlog
    pip install pycddl cbor2
    python tests/export/validate.py qlog FILE.sqlog...

The schemas are CDDL within the drafts' Markdown; `tcp.cddl` beside this file has what we add. Each event is
validated against the very type of its name. The result of the last time is in docs/export.md.
"""

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import cbor2
import pycddl

OURS = Path(__file__).parent / "tcp.cddl"
TYPES = {
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
FRAMES = {"ack": "AckFrame", "stream": "StreamFrame", "max_data": "MaxDataFrame"}
# `time` without quotes is a type to pycddl.
EVENT = 'Root = {{ "time": (int / float), name: {name}, group_id: text, data: {type} }}\n'


def published(folder: Path) -> str:
    """The CDDL of both drafts, and ours."""
    drafts = ("draft-ietf-quic-qlog-main-schema.md", "draft-ietf-quic-qlog-quic-events.md")
    blocks = [
        block
        for name in drafts
        for block in re.findall(
            r"^~~~ *cddl\n(.*?)^~~~", (folder / name).read_text(), re.DOTALL | re.MULTILINE
        )
    ]
    text = "\n".join([*blocks, OURS.read_text()])
    # pycddl does not unwrap.
    (log_file,) = re.findall(r"^LogFile = \{(.*?)\}", text, re.DOTALL | re.MULTILINE)
    text = text.replace("~LogFile", log_file)
    # JSON has one kind of number (RFC 8610 appendix E); pycddl's `number` has no fractions.
    text = re.sub(r"\bfloat(32|64)\b", "(int / float)", text)
    for socket, fields in re.findall(r"^(\$\$\S+) //= \((.*?)\)$", text, re.DOTALL | re.MULTILINE):
        text = text.replace(f"* {socket}\n", f"{fields}\n")
    text = re.sub(r"^\$\$\S+ //= \(.*?\)$", "", text, flags=re.DOTALL | re.MULTILINE)
    # Nothing else extends them.
    return re.sub(r"^ *\* \$\$.*\n", "", text, flags=re.MULTILINE)


def main() -> int:
    """Validates each file; returns how many texts are invalid."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("schemas", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    arguments = parser.parse_args()
    cddl = published(arguments.schemas)
    schemas = {
        name: pycddl.Schema(EVENT.format(name=json.dumps(name), type=kind) + cddl)
        for name, kind in TYPES.items()
    }
    frames = {name: pycddl.Schema(f"Root = {kind}\n" + cddl) for name, kind in FRAMES.items()}
    head = pycddl.Schema("Root = QlogFileSeq\n" + cddl)
    invalid = 0
    for path in arguments.files:
        counts: Counter[str] = Counter()
        first, *events = path.read_text().split("\x1e")[1:]
        invalid += not valid(head, json.loads(first), path)
        for event in map(json.loads, events):
            counts[event["name"]] += 1
            # One by one, because pycddl takes only the first choice of a list's elements.
            for frame in event["data"].get("frames", []):
                invalid += not valid(frames[frame["frame_type"]], frame, path)
            event["data"] |= {"frames": []} if "frames" in event["data"] else {}
            invalid += not valid(schemas[event["name"]], event, path)
        print(f"{path}: {counts.total()} events: {', '.join(f'{n} {c}' for n, c in sorted(counts.items()))}")
    print(f"{invalid} invalid")
    return min(invalid, 1)


def valid(schema: pycddl.Schema, text: Any, path: Path) -> bool:
    """Whether a text is of that schema; says why if it is not."""
    try:
        schema.validate_cbor(cbor2.dumps(text))
    except pycddl.ValidationError as error:
        print(f"{path}: {json.dumps(text)[:300]}: {error}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
