"""Files of the wrong kind: the error says what a file is, and which command or key takes it."""

from pathlib import Path

import polars as pl
import pytest

from conftest import SCENARIOS, command
from fullpipe import _native
from fullpipe.scenario.flow_lists import flow_list, synthetic

RECORDING = sorted((Path(__file__).parent / "recordings").glob("cubic-*.recording"))[0]
# Of each kind: the file, what errors call it, and what takes it.
KINDS = {
    "recording": ("a recording of kernel decisions", "fullpipe replay"),
    "deliveries": ("a delivery trace", "path.deliveries"),
    "capture": ("a packet capture", "fullpipe flows"),
    "flow list": ("a flow list", "FULLPIPE_FLOWS"),
    "scenario": ("a scenario", "fullpipe run"),
    "zip": ("a zip archive", "stored runs"),
}
# How to give a file to what takes another kind.
TAKERS = {
    "recording": ("replay", "the-file"),
    "deliveries": ("run", "takes-deliveries.toml"),
    "capture": ("flows", "the-file", "--out", "flows.parquet"),
    "scenario": ("run", "the-file"),
}


def write(kind: str, path: Path) -> None:
    """A file of that kind, whose name says nothing."""
    match kind:
        case "recording":
            path.write_bytes(RECORDING.read_bytes())
        case "deliveries":
            path.write_bytes((SCENARIOS / "deliveries" / "lte-like-2mbit.deliveries").read_bytes())
        case "capture":
            path.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
        case "flow list":
            flow_list.write(synthetic.draw(flows=20, seconds=1.0, seed=1), path)
        case "scenario":
            path.write_bytes((SCENARIOS / "cellular.toml").read_bytes())
        case "zip":
            path.write_bytes(b"PK\x03\x04 and so on")


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("kind", KINDS)
def test_wrong_kind_of_file_names_command(kind: str, taker: str, in_empty_folder: Path) -> None:
    if kind == taker:
        return
    write(kind, Path("the-file"))
    Path("takes-deliveries.toml").write_text(
        'compare = ["reno"]\n[path]\ndeliveries = "the-file"\nrtt = "20 ms"\n', encoding="utf-8"
    )
    done = command(*TAKERS[taker])
    name, fix = KINDS[kind]
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    assert "the-file" in done.stderr and name in done.stderr and fix in done.stderr


def test_a_flow_list_must_be_one(in_empty_folder: Path) -> None:
    write("capture", Path("the-file"))
    with pytest.raises(
        _native.ScenarioError, match="it is a packet capture; list its flows with `fullpipe flows`"
    ):
        flow_list.read(Path("the-file"))


def test_replay_reads_recordings_among_other_files(in_empty_folder: Path) -> None:
    write("deliveries", Path("lte.trace"))
    write("recording", Path("cubic.trace"))
    done = command("replay", "lte.trace", "cubic.trace")
    assert done.returncode == 2
    assert "cubic.trace" in done.stdout and "equal" in done.stdout
    assert "lte.trace is a delivery trace" in done.stderr and done.stderr.count("\n") == 1


def test_endless_files_are_not_read(in_empty_folder: Path) -> None:
    for path in ("/dev/zero", "/proc/kmsg", "."):
        done = command("replay", path)
        assert done.returncode == 2 and done.stderr.count("\n") == 1
        with pytest.raises(_native.RecordingError):
            _native.read_parquet(path)
    with pytest.raises(_native.ScenarioError):
        flow_list.read(Path("/dev/zero"))


# Reads each damaged file, and prints how often that gave a table and how often a sentence.
READS = """
import pathlib, sys
from fullpipe import _native
from fullpipe.conformance import recordings
from fullpipe.scenario.flow_lists import flow_list
read = {"flows": flow_list.read, "recording": recordings.read_recording}
counts = {"table": 0, "sentence": 0}
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    try:
        assert read[path.name.split("-")[0]](path).height
        counts["table"] += 1
        if path.name.startswith("recording"):
            _native.replay(str(path))
    except (_native.RecordingError, _native.ScenarioError) as error:
        assert "\\n" not in str(error).strip(), str(error)
        counts["sentence"] += 1
print(counts["table"], counts["sentence"])
"""


def test_damaged_parquet_is_read_or_refused(tmp_path: Path) -> None:
    import random
    import subprocess
    import sys

    draw = random.Random(7)
    folder = tmp_path / "damaged"
    folder.mkdir()
    flow_list.write(synthetic.draw(flows=300, seconds=1.0, seed=1), tmp_path / "flows")
    for name, whole in (("flows", (tmp_path / "flows").read_bytes()), ("recording", RECORDING.read_bytes())):
        for number in range(150):
            damaged = bytearray(whole)
            if number % 3 == 0:
                del damaged[draw.randrange(len(whole)) :]
            else:
                # The metadata at the end is where a bit does most.
                at = draw.randrange(len(whole)) if number % 3 == 1 else -draw.randrange(1, 2000)
                damaged[at] ^= 1 << draw.randrange(8)
            (folder / f"{name}-{number}").write_bytes(damaged)
    done = subprocess.run(
        [sys.executable, "-c", READS, str(folder)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stderr == ""
    tables, sentences = map(int, done.stdout.split())
    assert tables > 0 and sentences > 100


def test_table_reads_match_polars(tmp_path: Path) -> None:
    path = tmp_path / "flows.parquet"
    frame = synthetic.draw(flows=300, seconds=1.0, seed=1)
    flow_list.write(frame, path)
    assert flow_list.read(path).equals(pl.read_parquet(path))
