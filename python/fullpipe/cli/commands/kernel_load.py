"""`fullpipe kernel load`, `unload`, `status` and `prove`: our controllers in this kernel."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import fullpipe._native as _native
from fullpipe import files, reading
from fullpipe.cli.options import DISAGREE, AsJson, path_options, say, watching
from fullpipe.errors import unusable

UNITS = Path("/etc/systemd/system")
# Copies of objects that a unit loads at boot: nobody but root may change them.
OBJECTS = Path("/var/lib/fullpipe")
# What the drops of a rate recommend: docs/reports/bbr3-rate-drop.md.
_DEFAULT_PROFILE = "repaired"

# The ending of an object of a controller of the user's own, which crates/bpf/build.py makes; and the largest.
_OBJECT, _MOST_BYTES = ".o", 1 << 24
# Linux: TCP_CA_NAME_MAX is 16, with a NUL.
_LONGEST_NAME = 15

Controller = Annotated[
    str,
    typer.Argument(
        metavar="CONTROLLER",
        help="bbr3 or bbr1, with parameters, such as bbr1:probe_gain=1.1; or a file NAME.o with your own "
        "(docs/how-to/controllers.md).",
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        help="Of bbr3: draft (as the IETF's), linux (as in Google's kernel), or repaired (the draft's with "
        "changes, to follow a rate that falls). The default is repaired, because the draft may never follow "
        "(docs/reports/bbr3-rate-drop.md).",
        show_default="repaired",
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="NAME",
        help="Its name in the kernel.",
        show_default="fp_bbr3 for the profile repaired, fp_bbr3_draft, fp_bbr3_linux, fp_bbr1; a file's name",
    ),
]


def load(
    controller: Controller,
    profile: Profile = None,
    name: Name = None,
    as_default: Annotated[
        bool, typer.Option("--default", help="Make it this machine's default congestion control, too.")
    ] = False,
    persist: Annotated[
        bool, typer.Option("--persist", help="Write a systemd unit that loads it at boot.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Register a controller with this kernel, so that every program can use it.

    Needs root, Linux 6.10 or newer with BTF, and libbpf; no compiler. Nothing has to keep running. It stays
    until `fullpipe kernel unload` or the next boot. docs/how-to/bbr3-on-your-kernel.md has what was tested.
    """
    own = b""
    if controller.endswith(_OBJECT):
        own, called = _own(controller, profile, name)
        loaded = _load_own(own, Path(controller).name, called, as_default=as_default)
        chosen = str(OBJECTS / f"{called}{_OBJECT}")
    else:
        if profile is None and controller.partition(":")[0] == "bbr3" and "profile=" not in controller:
            profile = _DEFAULT_PROFILE
        mark = "," if ":" in controller else ":"
        chosen = controller if profile is None else f"{controller}{mark}profile={profile}"
        called = name or default_name(chosen)
        loaded = json.loads(_native.kernel_load(chosen, called, as_default))
    if persist:
        if own:
            OBJECTS.mkdir(mode=0o755, parents=True, exist_ok=True)
            files.write(OBJECTS, f"{called}{_OBJECT}", own, lasting=True)
        loaded["unit"] = str(_write_unit(chosen, called, as_default=as_default))
    if as_json:
        print(json.dumps(loaded))
        return
    print(f"{loaded['controller']} is loaded as {called} (object {loaded['sha256'][:12]}).")
    if as_default:
        print(
            f"New connections use it. `fullpipe kernel unload {called}` restores {loaded['default_before']}."
        )
    else:
        print(
            f"Use it: iperf3 -C {called}, setsockopt(TCP_CONGESTION), or --default for all new connections."
        )
    if persist:
        print(f"At boot: systemctl enable {Path(loaded['unit']).stem}")


def _own(path: str, profile: str | None, name: str | None) -> tuple[bytes, str]:
    """The controller in a file, and its name in the kernel."""
    if profile is not None:
        raise unusable("--profile", f"is an option of bbr3, and {path} is a file", "leave it out")
    try:
        made = reading.content(Path(path), _MOST_BYTES)
    except (OSError, reading.Unreadable) as error:
        wrong = getattr(error, "strerror", None) or f"it is {error}"
        raise unusable("CONTROLLER", f"{path} cannot be read: {wrong}", "name another file") from None
    called = name or Path(path).stem
    if len(called) > _LONGEST_NAME:
        wrong = f"{called} has {len(called)} letters, and the kernel takes {_LONGEST_NAME}"
        raise unusable("the name", wrong, "give a shorter one with --as")
    return made, called


def _load_own(made: bytes, file: str, called: str, *, as_default: bool) -> dict[str, Any]:
    """Registers such a controller: what was loaded."""
    digest = hashlib.sha256(made).hexdigest()
    try:
        loaded: dict[str, Any] = json.loads(_native.kernel_load_own(made, file, digest, called, as_default))
    except _native.WorldError as error:
        if "does not take it" not in str(error):
            raise
        wrong = f"{file} is refused by the kernel's verifier: {str(error).partition(';')[0]}"
        fix = "look for a loop without a bound; `bpftool prog loadall` prints the verifier's whole log"
        raise unusable("CONTROLLER", wrong, fix) from None
    return loaded


def unload(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name in the kernel.")],
    as_json: AsJson = False,
) -> None:
    """Remove a congestion control that `load` registered.

    New connections cannot choose it any more. Those that have it keep it until they end.
    """
    removed = json.loads(_native.kernel_unload(name))
    unit = _unit(name)
    if as_json:
        print(json.dumps({**removed, "unit": str(unit) if unit.exists() else None}))
        return
    kept = removed["connections"]
    print(f"{name} is removed." + (f" {kept} connections keep it until they end." if kept else ""))
    if removed["default"]:
        print(f"The default is {removed['default']} again.")
    if unit.exists():
        say(f"it is loaded at the next boot: systemctl disable {unit.stem}, and remove {unit}")


def status(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Only this one.", show_default="all")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List what is loaded, with the state of its connections: phase, window, bandwidth and minimum RTT.

    A connection goes on with Reno if its state has impossible values, or if the kernel has no memory for
    it. The list shows how many did, for each cause.
    """
    found = json.loads(_native.kernel_status(name))
    if as_json:
        print(json.dumps(found))
        return
    if not found:
        print("Nothing is loaded. `fullpipe kernel load bbr3` loads a controller.")
    for one in found:
        for line in described(one):
            print(line)


def described(one: dict[str, Any]) -> list[str]:
    """A congestion control in lines."""
    counters = one["counters"]
    default = ", the default" if one["is_default"] else ""
    lines = [f"{one['name']}: {one['controller']}, object {one['sha256'][:12]}{default}"]
    fallen = {cause[7:]: count for cause, count in counters.items() if cause.startswith("fallen_") and count}
    causes = ", ".join(f"{count} {cause}" for cause, count in fallen.items())
    lines.append(
        f"  connections: {len(one['connections'])} now, {counters['connections_begun']} in all; "
        f"fell back to Reno: {sum(fallen.values())}{f' ({causes})' if causes else ''}"
    )
    for flow in one["connections"]:
        state = flow["phase"] if flow["trusted"] else "fell back"
        lines.append(
            f"  :{flow['port']} to :{flow['to_port']}  {state}  cwnd {flow['cwnd']}  "
            f"in flight {flow['in_flight']}  bandwidth {flow['bandwidth_bps'] / 1e6:.1f} Mbit/s  "
            f"min RTT {flow['min_rtt_us'] / 1e3:.1f} ms"
        )
    return lines


@path_options(
    defaults={"rate": "", "rtt": ""},
    more={"rate": " Needed, unless --deliveries is given.", "rtt": " Needed."},
)
def prove(
    controller: Annotated[
        str,
        typer.Argument(
            metavar="CONTROLLER",
            help="bbr3 (the draft's), bbr3:profile=repaired, bbr3:profile=linux or bbr1, with parameters, "
            "such as bbr1:probe_gain=1.1.",
        ),
    ],
    path: dict[str, Any],
    duration: Annotated[str, typer.Option(help="How long to run.")] = "10 s",
    flows: Annotated[int, typer.Option(help="How many flows use it.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the path's random elements.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Check that a controller makes the same decisions in the kernel as in the simulator.

    Loads the controller, runs flows with it and records each call; unloads it, repeats each call with the
    simulator's controller, and compares the decisions. Exit code 1: one differs, or was not recorded.
    """
    from fullpipe.runs.worlds import kernel
    from fullpipe.runs.worlds.job import Job
    from fullpipe.scenario.scenario import from_document

    document = {
        "name": "prove",
        "duration": duration,
        "path": path,
        "flows": [{"controller": controller, "count": flows}],
    }
    job = Job(from_document(document).alternatives[0], seed)
    with watching() as watch:
        proof = kernel.prove(job, lambda done: watch("kernel", done, 1))
    if as_json:
        print(json.dumps(proof))
    else:
        times = proof["ack_ns_below"]
        print(f"{proof['calls']} calls of {proof['flows']} flows repeated: {proof['different']} differ")
        print(f"An ACK takes below {times['median']} ns (median), {times['p99']} ns (99 %)")
        if proof["lost"]:
            say(f"{proof['lost']} calls were not recorded, after which others differ: use a slower path")
        if proof["first"]:
            say(proof["first"])
    if proof["different"] or proof["lost"]:
        raise typer.Exit(DISAGREE)


def default_name(controller: str) -> str:
    """What the kernel calls a controller, e.g. fp_bbr3_linux. The default profile is not named."""
    name, _, parameters = controller.partition(":")
    profiles = [one.partition("=")[2] for one in parameters.split(",") if one.startswith("profile=")]
    called = "_".join([name, *(one for one in profiles if one != _DEFAULT_PROFILE)])
    return f"fp_{called}" if len(called) <= _LONGEST_NAME - len("fp_") else called


def _word(text: str) -> str:
    """A word of a command in a unit (systemd.service(5), "Command lines")."""
    for letter, written in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        text = text.replace(letter, written)
    return f'"{text}"'


def _unit(name: str) -> Path:
    return UNITS / f"fullpipe-{name}.service"


def _write_unit(controller: str, name: str, *, as_default: bool) -> Path:
    """Writes the systemd unit."""
    program = f"{_word(sys.executable)} -m fullpipe kernel"
    default = " --default" if as_default else ""
    text = f"""[Unit]
Description=Congestion control {name} of Fullpipe
After=sys-fs-bpf.mount

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={program} load {controller} --as {name}{default}
ExecStop={program} unload {name}

[Install]
WantedBy=multi-user.target
"""
    files.write(UNITS, f"fullpipe-{name}.service", text.encode(), lasting=True)
    return _unit(name)
