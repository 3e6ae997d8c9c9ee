"""Stacks in processes of their own, with a stand-in for an adapter. Runs need the program fullpipe-quic."""

import json
import math
import os
import platform
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fullpipe as fp
from fullpipe import api
from fullpipe.cli import app as cli
from fullpipe.conformance import runners
from fullpipe.report import tables
from fullpipe.runs.worlds import quic, quic_stacks, stack_calls, stacks

ADAPTER = Path(__file__).parent / "stack_stand_in.py"
ADAPTERS = Path(__file__).parent.parent / "quic/adapters"
PATH: dict[str, Any] = {"rate": "10 Mbit/s", "rtt": "40 ms", "duration": "3 s"}
ON_PATH = ("--rate", "10 Mbit/s", "--rtt", "40 ms", "--duration", "2 s")


def command(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli.app, words)
    return done.exit_code, " ".join(done.output.split())


def adapter(how: str = "") -> str:
    return f"{sys.executable} {ADAPTER} {how}".strip()


def toy(how: str = "") -> stacks.Stack:
    return stacks.of_command("toy", adapter(how))


@pytest.fixture
def with_toy() -> Iterator[None]:
    with stacks.using([toy()]):
        yield


@pytest.fixture(autouse=True)
def only_here() -> Iterator[None]:
    """What a command is given stays with the process; here, with its test."""
    with stacks.using([]):
        yield


# Without the program.


def test_an_adapter_says_what_it_is() -> None:
    found = toy()
    assert found.about["version"] == "1.0" and found.about["controllers"] == ["reno", "fixed"]
    assert "window" in found.about["tells"] and "phase" not in found.about["tells"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("./adapter", "expected NAME=COMMAND"),
        ("My Stack=./adapter", "expected NAME=COMMAND"),
        ("=./adapter", "expected NAME=COMMAND"),
        ("noq=./adapter", "expected a name that no other stack and no controller has"),
        ("cubic=./adapter", "expected a name that no other stack and no controller has"),
        ("mine=", "expected a program that can be run"),
        ("mine=./nothing-here", "expected a program that can be run"),
        ("mine=./adapter.py", 'or give its command: "python ./adapter.py"'),
        ("mine='", "expected words as in a shell"),
    ],
)
def test_what_names_no_adapter_is_a_sentence(text: str, reason: str) -> None:
    with pytest.raises(fp.ScenarioError, match=reason):
        stacks.of_text(text)
    code, message = command("compare", "bbr3", *ON_PATH, "--stack", text)
    assert code == 2 and reason in message, message


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("import time; time.sleep(600)", "does not say what it is within 1 s"),
        ("import sys; sys.exit('no licence here')", "ends without saying what it is: no licence here"),
        ("print('hello, world, I am a stack')", "says what it is in [0-9]+ bytes; at most"),
        ("import sys\nwhile True: sys.stderr.write('x' * 4096)", "does not say what it is within 1 s"),
        (r"import sys; sys.stdout.buffer.write(b'\x02\0\0\0[]')", "does not say what it is \\(quic/adapters"),
        (
            r"""import sys; sys.stdout.buffer.write(b'\x0e\0\0\0{"protocol":9}')""",
            "speaks protocol 9, this Fullpipe 1",
        ),
        (
            r"""import sys; sys.stdout.buffer.write(b'\x1b\0\0\0{"name":1,"controllers":[]}')""",
            "does not say its protocol, version \\(quic/adapters",
        ),
        (
            'import sys; text = b\'{"protocol": 1, "name": "x", "version": "1", "controllers": ["x"], \'\n'
            'text += b\'"tells": ["window", "cwnd"]}\'\n'
            "sys.stdout.buffer.write(len(text).to_bytes(4, 'little') + text)",
            "has `cwnd` in `tells`; known are window, ssthresh,",
        ),
    ],
)
def test_what_is_no_adapter_is_named(
    script: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(stacks.VARIABLE, "1" if "within 1 s" in reason else "60")
    (tmp_path / "bad.py").write_text(script, encoding="utf-8")
    with pytest.raises(fp.WorldError, match=reason) as caught:
        stacks.of_text(f"mine={sys.executable} {tmp_path}/bad.py")
    assert str(caught.value).startswith("stack mine (")


def test_another_adapter_has_another_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = toy()
    assert first.build == toy().build
    monkeypatch.setenv("TOY_VERSION", "2.0")
    assert toy().build != first.build


def test_a_scenario_starts_no_adapter_by_itself(tmp_path: Path) -> None:
    scenario = tmp_path / "one.toml"
    scenario.write_text(
        'path = { rate = "1 Mbit/s", rtt = "20 ms" }\nflows = [{ controller = "toy:reno" }]\n'
        f'[stacks]\ntoy = "{adapter()}"\n',
        encoding="utf-8",
    )
    code, message = command("run", str(scenario), "--world", "sim")
    assert code == 2 and "stacks" in message, message


def conversation(words: list[str], *asked: bytes) -> tuple[list[bytes], str]:
    """The whole frames that an adapter answers, each after it was asked for it, and what it says besides."""
    frames = (b'{"protocol": 1}', b'{"seed": 1, "controller": "none", "mtu": 1472}', *asked)
    given = b"".join(len(one).to_bytes(4, "little") + one for one in frames)
    done = subprocess.run(words, input=given, capture_output=True, timeout=60)
    rest, answers = done.stdout, []
    while rest:
        end = 4 + int.from_bytes(rest[:4], "little")
        assert len(rest) >= end, rest
        answers.append(rest[4:end])
        rest = rest[end:]
    return answers, done.stderr.decode()


# A turn of 5 ms, which starts after 5.
TURN = struct.pack("<QQII", 5_000_000, 10_000_000, 0, 0)
IN_PYTHON = """
import sys
sys.path.insert(0, {folder!r})
from fullpipe_stack import NEVER, State, serve

class Stack:
    connected, failed, delivered = True, False, 0
    state = lambda self: State()
    timer = lambda self, end: NEVER
    application = lambda self, end, now, app: None
    transmit = lambda self, end, now: ()

{change}
serve(dict(name="one", version="1", controllers=["none"]), lambda setup: Stack())
"""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("Stack.state = lambda self: State(window=14720.0)", "State.window is 14720.0; it must be an int"),
        ("Stack.state = lambda self: State(lost=-1)", "State.lost is -1; it must be an int, from 0"),
        ("Stack.delivered = 1.5", "delivered is 1.5; it must be an int"),
        ("Stack.timer = lambda self, end: 7e6", "timer() is 7000000.0; it must be an int"),
        ("Stack.transmit = lambda self, end, now: [(now / 1, 0, b'x')]", "leaves is 5000000.0; it must be"),
        ("Stack.transmit = lambda self, end, now: [(now, None, b'x')]", "ECN codepoint is None; it must be"),
    ],
)
def test_the_helper_in_python_names_what_is_no_whole_number(change: str, said: str, tmp_path: Path) -> None:
    script = tmp_path / "adapter.py"
    script.write_text(IN_PYTHON.format(folder=str(ADAPTERS / "python"), change=change), encoding="utf-8")
    answers, complaint = conversation([sys.executable, str(script)], TURN)
    assert len(answers) == 2 and said in complaint.splitlines()[-1], complaint


def test_the_helper_in_python_leaves_a_time_in_the_past_to_the_world(tmp_path: Path) -> None:
    script = tmp_path / "adapter.py"
    change = "Stack.transmit = lambda self, end, now: [(now - 1, 0, b'x')]"
    script.write_text(IN_PYTHON.format(folder=str(ADAPTERS / "python"), change=change), encoding="utf-8")
    answers, complaint = conversation([sys.executable, str(script)], TURN)
    assert struct.unpack_from("<Q", answers[2], 132) == (4_999_999,), complaint


IN_C = r"""
#include "fullpipe_stack.h"
#include <stdio.h>
#include <string.h>

static int has_sent;
static void *create(const fp_setup *setup, const char **why) {
    (void)setup, (void)why;
    printf("hello\n");
    return &has_sent;
}
static void receive(void *s, int end, uint64_t now, uint8_t ecn, uint8_t *d, size_t n)
    { (void)s, (void)end, (void)now, (void)ecn, (void)d, (void)n; }
static uint64_t timeout(void *s, int end) { (void)s, (void)end; return FP_NEVER; }
static void on_timeout(void *s, int end, uint64_t now) { (void)s, (void)end, (void)now; }
static void application(void *s, int end, uint64_t now, const fp_app *app)
    { (void)s, (void)end, (void)now, (void)app; }
static int transmit(void *s, int end, uint64_t now, uint8_t *out, size_t room, fp_sent *sent) {
    (void)s, (void)end, (void)now, (void)room;
    memcpy(out, "abc", 3);
    *sent = (fp_sent)SENT;
    return !has_sent++;
}
static uint64_t state(void *s, fp_state *out) { (void)s, (void)out; return 0; }

int main(void) {
    static const fp_stack stack = {create, receive, timeout, on_timeout, application, transmit, state};
    return fp_serve("{}", &stack);
}
"""


def in_c(folder: Path, sent: str) -> list[str]:
    """An adapter in C that prints when it is set up and sends so, or the test is skipped."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (folder / "one.c").write_text(IN_C, encoding="utf-8")
    helper, program = ADAPTERS / "c", folder / "one"
    words = [compiler, "-O1", "-Wall", "-Wextra", "-Werror", f"-DSENT={sent}", "-I", str(helper)]
    words += ["-o", str(program), str(folder / "one.c"), str(helper / "serve.c")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [str(program)]


def test_what_a_stack_in_c_prints_does_not_get_into_the_protocol(tmp_path: Path) -> None:
    answers, printed = conversation(in_c(tmp_path, "{now, 2, 3, 2}"), TURN)
    assert (answers[:2], printed) == ([b"{}", b'{"ok": true}'], "hello\n")
    # Three bytes in datagrams of two.
    expected = struct.pack("<QBBHI", 5_000_000, 1, 2, 0, 2) + b"ab"
    expected += struct.pack("<QBBHI", 5_000_000, 1, 2, 0, 1) + b"c"
    assert len(answers) == 3 and answers[2][128:] == struct.pack("<I", 2) + expected


def test_the_helper_in_c_leaves_a_time_in_the_past_to_the_world(tmp_path: Path) -> None:
    answers, complaint = conversation(in_c(tmp_path, "{now - 1, 2, 3, 3}"), TURN)
    assert struct.unpack_from("<Q", answers[2], 132) == (4_999_999,), complaint


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (
            "{now, 2, 3, 0}",
            "transmit() writes 3 bytes in datagrams of 0; at most 131072 in datagrams of at least",
        ),
        ("{now, 2, 131073, 1}", "transmit() writes 131073 bytes in datagrams of 1"),
    ],
)
def test_datagrams_that_cannot_be_end_an_adapter_in_c(sent: str, said: str, tmp_path: Path) -> None:
    answers, complaint = conversation(in_c(tmp_path, sent), TURN)
    assert len(answers) == 2 and said in complaint, complaint


def test_the_helper_in_python_speaks_the_protocol() -> None:
    process = subprocess.Popen([sys.executable, str(ADAPTER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None

    def ask(content: bytes) -> bytes:
        process.stdin.write(len(content).to_bytes(4, "little") + content)
        process.stdin.flush()
        return process.stdout.read(int.from_bytes(process.stdout.read(4), "little"))

    assert json.loads(ask(b'{"protocol": 1}'))["name"] == "toy"
    setup = {"seed": 1, "controller": "reno", "mtu": 1472}
    assert json.loads(ask(json.dumps(setup).encode())) == {"ok": True}
    # The application begins 5 ms into a turn of 20: a datagram leaves then, with a timer of a second.
    asked = struct.pack("<QQII", 0, 20_000_000, 0, 1) + struct.pack("<QB7xQ", 5_000_000, 0, 3000)
    answer = ask(asked)
    until, timer, flags, delivered, *_ = struct.unpack_from("<16Q", answer)
    assert (until, timer, flags, delivered) == (20_000_000, 1_005_000_000, 0, 0)
    assert int.from_bytes(answer[128:132], "little") == 1
    assert struct.unpack_from("<QBBHI", answer, 132) == (5_000_000, 0, 2, 0, 9)
    # The answer to it, and all three thousand bytes follow in the same instant.
    back = struct.pack("<QBBHI", 45_000_000, 0, 0, 0, 9) + bytes(9)
    answer = ask(struct.pack("<QQII", 45_000_000, 64_999_999, 1, 0) + back)
    assert struct.unpack_from("<16Q", answer)[2] == 1 and int.from_bytes(answer[128:132], "little") == 3
    process.stdin.close()
    assert process.wait(20) == 0 and process.stdout.read() == b""
    process.stdout.close()


# With it.


needs_program = pytest.mark.usefixtures("quic_stacks")
needs_trace = pytest.mark.usefixtures("traceable")


@pytest.fixture(scope="session")
def traceable() -> None:
    """Skips the test where no process may be traced, or the processor's calls are not known."""
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("needs x86-64 or AArch64")
    asks = "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(0, 0, None, None) != 0)"
    if subprocess.run([sys.executable, "-c", asks]).returncode:
        pytest.skip("needs permission to trace a child process")


@needs_program
@pytest.mark.usefixtures("with_toy")
def test_a_stack_behind_an_adapter_runs_like_one_that_is_linked_in() -> None:
    found = fp.compare(["toy:reno", "noq:newreno"], world="quic", seeds=1, **PATH)
    assert found.notes == []
    for label, goodput in zip(found.summary["controller"], found.summary["goodput_bps"], strict=True):
        assert 6e6 < goodput < 9.8e6, label
    assert "toy:reno" in {one["name"] for one in api.controllers()}
    run = found.runs[0]
    assert "toy 1.0" in json.dumps(run.summary) and "no pacing" in json.dumps(run.summary)
    assert any(one.startswith("toy does not tell min_rtt") for one in run.unsupported)


@needs_program
@pytest.mark.parametrize(("how", "known"), [("discreet", False), ("", True)])
def test_losses_that_a_stack_does_not_tell_are_unknown_and_not_zero(
    how: str, known: bool, tmp_path: Path
) -> None:
    lossy = ("compare", "toy:reno", "--world", "quic", *ON_PATH, "--loss", "2 %", "--seeds", "1")
    lossy += ("--stack", f"toy={adapter(how)}")
    code, printed = command(*lossy, "--json")
    assert code == 0, printed
    (result,) = json.loads(printed)["results"]
    means = [result[name]["mean"] for name in ("retransmits", "loss_ratio")]
    assert all(mean > 0 for mean in means) if known else means == [None, None]
    # A table of numbers, in the terminal and in the report: there is a dash for each that is unknown.
    code, table = command(*lossy, "--out", str(tmp_path))
    of_report = re.search(
        r"<tr>(?:(?!</tr>).)*toy:reno.*?</tr>",
        (tmp_path / "report.html").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert code == 0 and of_report is not None
    dashes = 0 if known else 2
    assert (table.count("–"), of_report[0].count("–")) == (dashes, dashes), table + of_report[0]
    path = {"rate": "10 Mbit/s", "rtt": "40 ms", "loss": "2 %"}
    document = {"duration": "2 s", "path": path, "flows": [{"controller": "toy:reno"}]}
    with stacks.using([toy(how)]):
        (run,) = fp.run(document, world="quic").runs
    (flow,) = run.summary["flows"]
    assert (flow["retransmits"] is not None, flow["loss_ratio"] is not None) == (known, known)
    assert flow["timeouts"] is None and flow["undos"] is None
    assert (run.flow_series()["retransmits"].null_count() == 0) == known


@needs_program
@pytest.mark.usefixtures("with_toy")
def test_flows_of_several_stacks_share_one_path() -> None:
    document = {
        "duration": "8 s",
        "path": {"rate": "10 Mbit/s", "rtt": "40 ms", "buffer": "2 bdp"},
        "flows": [{"controller": name} for name in ("toy:reno", "noq:newreno", "quinn:cubic", "toy:reno")],
    }
    (first,), (again,) = (fp.run(document, world="quic").runs for _ in range(2))
    shares = [flow["goodput_bps"] for flow in first.summary["flows"]]
    assert all(share > 3e5 for share in shares) and 7e6 < sum(shares) < 9.8e6
    assert first.summary == again.summary


@needs_program
@pytest.mark.usefixtures("with_toy")
def test_a_size_is_delivered_and_a_stop_ends_a_flow() -> None:
    path = {"rate": "10 Mbit/s", "rtt": "40 ms"}
    flows = [
        {"controller": "toy:reno", "size": "500 kB", "start_jitter": "0 s"},
        {"controller": "toy:fixed", "stop": "1 s"},
    ]
    (run,) = fp.run({"duration": "6 s", "path": path, "flows": flows}, world="quic").runs
    sized, stopped = run.summary["flows"]
    assert sized["completed"] and sized["delivered_bytes"] == 500_000
    assert 0.4 < sized["end_ns"] / 1e9 < 5
    assert stopped["end_ns"] == 1_000_000_000 and not stopped["completed"]


@needs_program
@pytest.mark.usefixtures("with_toy")
def test_what_an_adapter_cannot_run_is_refused() -> None:
    for flow, reason in (
        ({"controller": "toy:cubic"}, "toy has no controller cubic; choose toy:reno, toy:fixed"),
        ({"controller": "tcpls:cubic"}, "tcpls is not a stack of this world; it has noq, quinn, toy"),
        (
            {"controller": "toy:reno", "bursts": {"size": "10 kB", "every": "1 s"}},
            "an adapter sends one stream",
        ),
    ):
        (alternative,) = api.load(
            {"path": {"rate": "1 Mbit/s", "rtt": "20 ms"}, "flows": [flow]}
        ).alternatives
        assert reason in (quic.WORLD.refuses(alternative) or "")


@needs_program
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("hang", "does not answer within 2 s; look for a loop without end"),
        ("complain", "does not answer within 2 s: xxx"),
        ("die", "has ended (exit status: 1): the stack has failed an assertion"),
        ("flood", "answers with 4294967295 bytes; at most 67108864 are read"),
        ("grow", "wants to send 2"),
        ("late", "an answer repeats the turn's end"),
        ("past", "sends at 400 ms, before its turn, which begins at"),
        ("long", "sends a datagram of 9000 bytes; the path carries 1 to 1472 (hosts.mtu)"),
        ("short", "datagrams leave, and its answer ends after"),
        ("fails", "ends its connection: the peer has closed"),
        ("spin", "asks to be called again 1000 times within 1 ms, and does nothing"),
    ],
)
def test_an_adapter_with_a_defect_ends_its_run_and_is_named(
    how: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only one that never answers is waited for; a busy machine must not make another one seem so.
    monkeypatch.setenv(stacks.VARIABLE, "2" if "within 2 s" in reason else "120")
    # Where nothing is delayed at its end, each instant is a turn.
    path = {"rate": "10 Mbit/s", "rtt": "0 ms" if how == "spin" else "40 ms"}
    document = {"duration": "60 s", "path": path, "flows": [{"controller": "toy:reno"}]}
    with stacks.using([toy(how)]), pytest.raises(fp.WorldError) as caught:
        fp.run(document, world="quic")
    assert "stack toy (" in str(caught.value) and reason in str(caught.value), caught.value


def _of_adapter(how: str) -> list[int]:
    """Processes of an adapter that misbehaves so."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                words = (path / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(ADAPTER).encode() in words and how.encode() in words:
                found.append(int(path.name))
    return found


def _soon(reached: Any) -> bool:
    ends_s = time.monotonic() + 60
    while not reached():
        if time.monotonic() > ends_s:
            return False
        time.sleep(0.02)
    return True


@needs_program
def test_a_process_that_an_adapter_leaves_ends_with_the_run() -> None:
    def left() -> list[str]:
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        return [line for line in listed.splitlines() if line == "sleep 600"]

    before = len(left())
    with stacks.using([toy("leak")]):
        fp.run(
            {
                "duration": "1 s",
                "path": {"rate": "1 Mbit/s", "rtt": "20 ms"},
                "flows": [{"controller": "toy:reno"}],
            },
            world="quic",
        )
    assert _soon(lambda: len(left()) <= before)


@needs_program
def test_nothing_survives_the_death_of_the_parent() -> None:
    script = (
        "import fullpipe as fp\n"
        "from fullpipe.runs.worlds import stacks\n"
        f"with stacks.using([stacks.of_command('toy', {adapter('hang')!r})]):\n"
        "    flows = [{'controller': 'toy:reno'}]\n"
        "    path = {'rate': '1 Mbit/s', 'rtt': '20 ms'}\n"
        "    fp.run({'duration': '60 s', 'path': path, 'flows': flows}, world='quic')\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, stacks.VARIABLE: "600"})
    try:
        # One that was asked what it is has ended; that of the run stays.
        assert _soon(lambda: len(_of_adapter("hang")) == 1)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert _soon(lambda: not _of_adapter("hang"))


@needs_program
def test_a_check_finds_that_packets_repeat_however_the_stack_is_asked() -> None:
    found = quic_stacks.check(toy(), ["reno"], "2 s")
    assert [one.way for one in found][-1] == "another seed" and not found[-1].same
    assert all(one.equal for one in found), found
    assert {one.digest for one in found[:-1]} == {found[0].digest} and found[0].packets > 1000
    assert not any(one.doubts for one in found), found


@needs_program
def test_a_check_finds_round_trip_times_by_the_machines_clock() -> None:
    code, message = command("stacks", "check", adapter("clock"), "--controller", "reno", "--duration", "1 s")
    assert code == 1, message
    assert re.search(r"run 2 tells srtt \S+ ms at \S+ s; run 1 told \S+ ms", message), message
    assert "which is below the path's delay of 40 ms" in message, message
    # Packets alone do not show it.
    found = quic_stacks.check(toy("clock"), ["reno"], "500 ms")
    assert len({one.digest for one in found[:4]}) == 1 and [one.same for one in found[:4]] != [True] * 4, (
        found
    )


@needs_program
@pytest.mark.parametrize(
    ("how", "expected", "notes"),
    [
        ("", 0, []),
        ("unconnected", 1, ["fixed: the adapter never says that it is connected (flag 1)."]),
        ("undelivered", 1, ["fixed: the adapter delivers nothing in 400 ms (`delivered` stays 0)."]),
        (
            "boasts",
            0,
            [
                "The adapter lists `srtt` in `tells`, and never tells it.",
                "The adapter lists `phase` in `tells`, and never tells it.",
                "The adapter tells `min_rtt`, which its `tells` does not list.",
            ],
        ),
    ],
)
def test_a_check_names_what_an_adapter_does_not_tell(how: str, expected: int, notes: list[str]) -> None:
    words = ("stacks", "check", adapter(how), "--controller", "fixed", "--duration", "400 ms")
    code, message = command(*words)
    assert code == expected, message
    assert all(note in message for note in notes), message
    assert ("the adapter" in message.partition("In a run")[0].lower()) == bool(notes), message


@needs_program
def test_a_check_names_the_first_packet_that_differs() -> None:
    code, message = command(
        "stacks", "check", adapter("random"), "--controller", "fixed", "--duration", "2 s", "--json"
    )
    assert code == 1, message
    again = json.loads(message)["runs"][1]
    assert not again["same"]
    assert "bytes of the client at" in again["differs"] and again["differs"].startswith("packet ")


@needs_program
@needs_trace
def test_a_check_names_what_an_adapter_asks_its_machine_for() -> None:
    found = {how: quic_stacks.calls(toy(how), "reno", "500 ms") for how in ("", "draws")}
    plain, draws = (found[how].counts for how in ("", "draws"))
    assert plain is not None and "getrandom" not in plain, found
    assert draws is not None and draws["getrandom"] > 10, found
    words = ("stacks", "check", adapter("draws"), "--controller", "reno", "--duration", "500 ms")
    code, message = command(*words)
    assert code == 0 and "the adapter asks its machine for" in message and "getrandom (" in message, message
    code, message = command(*words, "--json")
    shown = json.loads(message)
    assert code == 0 and shown["calls"]["getrandom"] == draws["getrandom"], message
    assert shown["calls_reason"] == "" and len(shown["runs"]) == 5, message


@needs_program
@needs_trace
def test_a_run_that_fails_while_its_calls_are_counted_is_named() -> None:
    found = quic_stacks.calls(toy("shy"), "reno", "2 s")
    assert found.counts is not None and "I am being watched" in found.reason, found
    said = tables.stack_calls("reno", found.counts, found.reason)
    assert "I am being watched" in said and "fails" in said, said
    assert all(one.equal for one in quic_stacks.check(toy("shy"), ["reno"], "1 s"))


@needs_program
@needs_trace
def test_calls_are_counted_with_more_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(stacks.VARIABLE, "600")
    subject = toy("hang")
    with pytest.raises(fp.WorldError, match="does not answer within 2 s"):
        quic_stacks._trace(subject, "reno", "1 s", 1, instants=False, patience_s=2)
    asked = []

    def late(*_: object, patience_s: float, **__: object) -> bytes:
        asked.append(patience_s)
        raise fp.WorldError(
            "stack subject (./toy) does not answer within 6000 s; look for a loop without end"
        )

    monkeypatch.setattr(quic_stacks, "_trace", late)
    found = quic_stacks.calls(subject, "reno", "1 s")
    assert asked == [6000] and found.reason == "the calls could not be counted: too slow"
    assert found.reason in tables.stack_calls("reno", found.counts, found.reason)


@needs_trace
@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("pass", ""),
        ("os.read(other, 1)", ""),
        ("time.time()", "clock_gettime"),
        ("os.urandom(1)", "getrandom"),
        ("os.read(device, 1)", "/dev/urandom"),
        ("os.read(os.dup(device), 1)", "/dev/urandom"),
        ("os.read(os.open('/dev/urandom', os.O_RDONLY), 1)", "/dev/urandom"),
        # The system call `open`, which only older processors have.
        pytest.param(
            "os.read(libc.syscall(2, b'/dev/urandom', 0), 1)",
            "/dev/urandom",
            marks=pytest.mark.skipif(platform.machine() != "x86_64", reason="needs x86-64"),
        ),
    ],
)
def test_calls_of_a_program_are_counted_from_its_first_answer(call: str, name: str, tmp_path: Path) -> None:
    script = (
        "import ctypes, os, time\n"
        "libc = ctypes.CDLL(None)\n"
        "device, other = (os.open(name, os.O_RDONLY) for name in ('/dev/urandom', '/dev/zero'))\n"
        # As the helpers do, so that what a stack prints is no answer.
        "answers = os.dup(1)\nos.dup2(2, 1)\nos.write(1, b'printed')\n"
        f"{call}\nos.write(answers, b'x')\nfor _ in range(20): {call}\nos._exit(3)"
    )
    report = tmp_path / "report"
    report.write_bytes(bytes(stack_calls.COUNTERS.size))
    words = [sys.executable, stack_calls.__file__, str(report), sys.executable, "-c", script]
    done = subprocess.run(words, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"x", b"printed")
    assert stack_calls.counted(report.read_bytes()) == ({name: 20} if name else {})


def test_calls_on_an_unknown_processor_are_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "m68k")
    report, begun = tmp_path / "report", tmp_path / "begun"
    report.write_bytes(bytes(stack_calls.COUNTERS.size))
    assert stack_calls.main(str(report), ["/usr/bin/touch", str(begun)]) == stack_calls.UNKNOWN
    assert not begun.exists()
    found = quic_stacks.calls(toy(), "reno", "500 ms")
    assert found.counts is None and "m68k" in found.reason
    said = tables.stack_calls("reno", found.counts, found.reason)
    assert "cannot be seen here" in said and "m68k" in said


def test_a_clock_that_is_not_found_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = stack_calls._VECTOR.pack(stack_calls._VDSO, 1) * 999
    monkeypatch.setattr(Path, "read_bytes", lambda _: elsewhere)
    with pytest.raises(RuntimeError, match="vDSO"):
        stack_calls._hide_vdso(os.getpid())


def test_calls_of_an_untraceable_adapter_are_unknown() -> None:
    assert stack_calls.counted(bytes(stack_calls.COUNTERS.size)) is None and stack_calls.counted(b"") is None
    assert "cannot be seen here: no" in tables.stack_calls("reno", None, "no")


@needs_program
def test_stacks_are_listed() -> None:
    code, message = command("stacks", "--stack", f"toy={adapter()}", "--json")
    assert code == 0, message
    assert [one["name"] for one in json.loads(message)] == ["noq", "quinn", "toy"]
    code, message = command("stacks", "--stack", f"toy={adapter()}")
    assert code == 0 and "toy:reno, toy:fixed" in message and "no pacing" in message, message


@needs_program
@pytest.mark.usefixtures("with_toy")
def test_cases_are_played_over_an_adapter() -> None:
    found = fp.conform("toy:reno", ["deep-buffer", "rate-up-10x"])
    assert {one.verdict for one in found.results} <= {"pass", "fail"}, found
    assert "toy 1.0" in found.versions


@needs_program
@pytest.mark.parametrize(("how", "verdict"), [("", "pass"), ("silent", "not applicable")])
def test_cases_about_what_a_stack_does_not_tell_are_not_applicable(how: str, verdict: str) -> None:
    with stacks.using([toy(how)]):
        found = fp.conform("toy:reno", ["decrease-reno", "one-packet-a-round"], suite="loss")
        assert {one.verdict for one in found.results} == {verdict}
        for one in found.results:
            assert how == "" or re.fullmatch("its stack does not tell (window|in_flight)", one.reason)
        # What is delivered and what waits in the queue, the world sees by itself.
        (seen,) = fp.conform("toy:reno", ["clean-path"]).results
        assert seen.verdict in ("pass", "fail"), seen.reason


@needs_program
@pytest.mark.usefixtures("with_toy")
def test_many_steps_behind_an_adapter_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fullpipe.conformance.runners._PATIENCE_S", 0.0)
    (one,) = fp.conform("toy:reno", ["clean-path"]).results
    assert one.verdict in ("pass", "fail") and "does not answer" not in one.reason, one
    # It ends at last: tests/test_conform_loss.py shows how.
    path = {"rate": "10 Mbit/s", "rtt": "40 ms"}
    bed = runners.OverQuic({"duration": "1 s", "path": path, "flows": [{"controller": "toy:reno"}]}, 1)
    assert bed._talk._patience_s == runners._PATIENCE_OF_ADAPTERS_S < math.inf
    bed._talk.close()


@needs_program
def test_cases_of_loss_based_controllers_ask_what_kind_an_unknown_one_is() -> None:
    words = ("conform", "toy:fixed", "--suite", "loss", "--case", "decrease-reno", "--json")
    words += ("--stack", f"toy={adapter()}")
    code, message = command(*words)
    said = "Fullpipe does not know what kind of controller toy:fixed is: add --like cubic, reno or"
    assert code == 2 and said in message, message
    code, message = command(*words, "--like", "reno")
    assert code != 2 and json.loads(message)["cases"][0]["verdict"] != "not applicable", message


@needs_program
@pytest.mark.usefixtures("with_toy")
def test_reasons_behind_an_adapter_are_about_adapters() -> None:
    path = {"rate": "10 Mbit/s", "rtt": "40 ms"}
    document = {"duration": "500 ms", "path": path, "flows": [{"controller": "toy:reno"}]}
    (alternative,) = api.load({**document, "hosts": {"gro": "1 ms"}}).alternatives
    assert "hosts.gro: an adapter takes each datagram" in (quic.WORLD.refuses(alternative) or "")
    (run,) = fp.run({**document, "hosts": {"pacing": True}}, world="quic").runs
    assert "hosts.pacing is ignored: the stack paces by its own policy." in run.unsupported


@needs_program
def test_the_scenario_of_a_failure_names_the_adapter(tmp_path: Path) -> None:
    words = ("conform", "toy:fixed", "--case", "clean-path", "--out", str(tmp_path / "out"))
    code, message = command(*words, "--stack", f"toy={adapter()}")
    assert code == 1, message
    text = (tmp_path / "out/cases/clean-path.toml").read_text(encoding="utf-8")
    # Of the command that tested it, and of the one that repeats the run.
    assert text.count(f"--stack 'toy={adapter()}'") == 2, text
    page = (tmp_path / "out/cases/clean-path.html").read_text(encoding="utf-8")
    assert re.search(r"fullpipe run clean-path.toml --world quic --seed \d+ --stack", page)


# In Go.


def go(folder: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of Go in an adapter's folder, or the test is skipped."""
    if shutil.which("go") is None:
        pytest.skip("needs Go: https://go.dev/dl")
    return subprocess.run(["go", *words], cwd=ADAPTERS / folder, capture_output=True, text=True)


@pytest.fixture(scope="module", params=["quicgo", "netstack"])
def in_go(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> stacks.Stack:
    """A stack in Go, if its modules are here or can be fetched."""
    name = request.param
    fetched = go(name, "mod", "download")
    if fetched.returncode:
        pytest.skip(f"needs {name}'s modules: {fetched.stderr.strip().splitlines()[-1]}")
    program = tmp_path_factory.mktemp(name) / f"stack-{name}"
    how = ["test", "-c"] if name == "quicgo" else ["build", "-buildvcs=false"]
    built = go(name, *how, "-p", "1", "-trimpath", "-o", str(program), ".")
    assert built.returncode == 0, built.stderr
    return stacks.of_command(name, str(program))


@pytest.mark.long
def test_the_helper_in_go_passes_its_tests() -> None:
    done = go("go", "test", "-p", "1", "./...")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@needs_program
def test_packets_of_a_stack_in_go_repeat_however_it_is_asked(in_go: stacks.Stack) -> None:
    modules = (ADAPTERS / in_go.name / "go.mod").read_text(encoding="utf-8")
    (version,) = re.findall(r"(?:quic-go/quic-go v|gvisor.dev/gvisor v0\.0\.0-)(\S+)\n", modules)
    assert in_go.about["version"] == version
    found = quic_stacks.check(in_go, None, "2 s")
    assert all(one.equal for one in found), found
    assert not found[-1].same and found[0].packets > 1000


@pytest.mark.long
@needs_program
def test_a_stack_in_go_delivers_a_size_and_stops(in_go: stacks.Stack) -> None:
    path = {"rate": "10 Mbit/s", "rtt": "40 ms"}
    controller = f"{in_go.name}:{in_go.about['controllers'][-1]}"
    flows = [
        {"controller": controller, "size": "500 kB", "start_jitter": "0 s"},
        {"controller": controller, "stop": "1 s"},
    ]
    with stacks.using([in_go]):
        (run,) = fp.run({"duration": "6 s", "path": path, "flows": flows}, world="quic").runs
    sized, stopped = run.summary["flows"]
    assert sized["completed"] and sized["delivered_bytes"] == 500_000
    assert 0.4 < sized["end_ns"] / 1e9 < 5
    assert stopped["end_ns"] == 1_000_000_000 and not stopped["completed"]
    assert stopped["delivered_bytes"] > 100_000
