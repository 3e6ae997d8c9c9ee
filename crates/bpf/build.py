"""Builds the congestion controls for the kernel: `make bpf-objects`.

    python crates/bpf/build.py [--only NAME] [--into FOLDER]
    python crates/bpf/build.py --crate FOLDER --into FOLDER

With `--crate`, of a controller of your own (examples/kernel-controller).

Each object is made of a controller in Rust and the shim in C, as one module of LLVM's intermediate code. The
same sources and tools give the same bytes anywhere. The tools are Debian's, all with the same LLVM:

    apt install clang-22 llvm-22 rustc-web cargo-web libstd-rust-web-dev-bpf

Nobody needs them who only uses the objects, which are part of the repository and of the package.
`src/table.rs` lists them, and where in each object each parameter is.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "program"
LLVM = Path("/usr/lib/llvm-22/bin")
CARGO, RUSTC = Path("/usr/bin/cargo"), Path("/usr/bin/rustc")
PACKAGES = "clang-22 llvm-22 rustc-web cargo-web libstd-rust-web-dev-bpf"
# Feature of program/Cargo.toml, and the scenario's name of the same controller.
CONTROLLERS = {
    "bbr3": "bbr3",
    "bbr3-linux": "bbr3:profile=linux",
    "bbr1": "bbr1",
}
# The one with faults to inject, for the tests.
FAULTS = "faults"
CPU = "v3"
# So that no function of Rust's remains: they have no description of their types, and libbpf refuses an object
# in which some functions have one.
INLINE = [
    f"-{name}-threshold=1000000" for name in ("inline", "inlinehint", "inlinecold", "inline-cold-callsite")
]
# What the outside refers to.
KEPT = (
    "LICENSE options flows counters about calls times faults congestion list_flows"
    " call_\\w+ find_\\w+ go_to_\\w+ on_\\w+"
)


def missing() -> str:
    """What of the tools is not there; empty if nothing."""
    needed = [LLVM / "clang", LLVM / "opt", CARGO, RUSTC, Path("/usr/lib/rustlib/bpfel-unknown-none")]
    absent = [str(path) for path in needed if not path.exists()]
    return f"no {', '.join(absent)}; on Debian: apt install {PACKAGES}" if absent else ""


def run(*command: str | Path, **environment: str) -> str:
    """Runs a tool; its output."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CARGO", "RUST"))}
    kept = {name: os.environ[name] for name in ("CARGO_HOME",) if name in os.environ}
    done = subprocess.run(
        [str(part) for part in command],
        env={**clean, **kept, **environment},
        capture_output=True,
        text=True,
        cwd=HERE,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def cargo(folder: Path, crate: Path, target: str, *more: str, **environment: str) -> None:
    """Compiles the Rust half."""
    repository = HERE.parents[1]
    flags = f"--remap-path-prefix={repository}=/fullpipe --remap-path-prefix={folder}=/build"
    if not crate.is_relative_to(repository):
        flags += f" --remap-path-prefix={crate}=/own"
    if target.startswith("bpf"):
        flags += f" -C target-cpu={CPU} -Z function-sections=no"
    run(
        CARGO, "rustc", "--quiet", "--release", "--locked", "--offline",
        "--manifest-path", crate / "Cargo.toml", "--target", target, "--target-dir", folder, *more,
        RUSTC=str(RUSTC), RUSTC_BOOTSTRAP="1", RUSTFLAGS=flags, **environment,
    )  # fmt: skip


def build(name: str, into: Path, crate: Path | None = None) -> bytes:
    """One object: of the controller that a feature of `program/` has, or of another crate."""
    feature = "bbr3" if name == FAULTS else name
    features = [] if crate else ["--features", feature]
    cargo(into, crate or PROGRAM, "bpfel-unknown-none", *features, "--lib", "--", "--emit=obj")
    found = list((into / "bpfel-unknown-none" / "release" / "deps").glob("program-*.o"))
    if len(found) != 1:
        sys.exit(
            f'{crate or PROGRAM}: its library has to be called "program", as in examples/kernel-controller'
        )
    (rust,) = found
    shim, linked, optimised, object_file = (
        into / part for part in ("shim.bc", "linked.bc", "optimised.bc", "done.o")
    )
    defined = ["-DFAULTS", "-DSTUCK_US=1000000", "-DSTUCK_ROUNDS=16"] if name == FAULTS else []
    run(
        LLVM / "clang", "-O2", "-g", "-target", "bpf", f"-mcpu={CPU}", "-emit-llvm", "-Wall", "-Werror",
        "-Wno-unused-function", "-fdebug-compilation-dir=.", *defined,
        "-c", "shim/congestion.bpf.c", "-o", shim,
    )  # fmt: skip
    # Panics are never inlined, and what the compiler's own library has is for another processor's name.
    code = into / "rust.ll"
    run(LLVM / "llvm-dis", rust, "-o", code)
    text = code.read_text(encoding="utf-8")
    attributes = re.compile(r"^attributes #.*$", re.M)
    text = attributes.sub(
        lambda line: line[0].replace("noinline", "alwaysinline").replace('"generic"', f'"{CPU}"'), text
    )
    code.write_text(text, encoding="utf-8")
    run(LLVM / "llvm-link", shim, code, "-o", linked)
    symbols = {line.split()[-1] for line in run(LLVM / "llvm-nm", "--defined-only", shim).splitlines()}
    kept = [one for one in sorted(symbols) if any(re.fullmatch(kept, one) for kept in KEPT.split())]
    run(
        LLVM / "opt", "-passes=internalize,default<O1>", f"-internalize-public-api-list={','.join(kept)}",
        *INLINE, linked, "-o", optimised,
    )  # fmt: skip
    # Nothing where code ends without a return, as behind a panic: the trap is a function of newer kernels.
    trap = "-bpf-disable-trap-unreachable"
    run(LLVM / "llc", "-march=bpf", f"-mcpu={CPU}", trap, "-filetype=obj", optimised, "-o", object_file)
    run(LLVM / "llvm-strip", "-g", object_file)
    return object_file.read_bytes()


def layouts() -> dict[str, str]:
    """Of each controller, where this compiler puts its parameters, for the table."""
    host = re.search(r"^host: (.*)$", run(RUSTC, "-vV"), re.M)
    assert host is not None
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder)
        features = ["--features", "bbr3"]
        cargo(into, PROGRAM, host[1], *features, "--example", "layout", CARGO_PROFILE_RELEASE_LTO="off")
        program = into / host[1] / "release" / "examples" / "layout"
        return {name: run(program, controller).strip() for name, controller in CONTROLLERS.items()}


def table(into: Path) -> str:
    """The source of `src/table.rs`."""
    parameters = layouts()
    lines = [
        "// Made by build.py: see there.",
        "",
        "#[rustfmt::skip]",
        "pub(super) const OBJECTS: &[Object] = &[",
    ]
    for name, controller in CONTROLLERS.items():
        digest = hashlib.sha256((into / f"{name}.o").read_bytes()).hexdigest()
        lines += [
            f'    Object {{ controller: "{controller}", sha256: "{digest}",',
            f'        bytes: include_bytes!("../objects/{name}.o"), {parameters[name]} }},',
        ]
    return "\n".join([*lines, "];", ""])


def main() -> int:
    """The command line; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", choices=[*CONTROLLERS, FAULTS])
    parser.add_argument("--crate", type=Path, help="of a controller of your own, instead of ours")
    parser.add_argument("--into", type=Path, default=HERE / "objects")
    arguments = parser.parse_args()
    if message := missing():
        sys.exit(message)
    crate = arguments.crate and arguments.crate.resolve()
    if crate and (arguments.only or arguments.into == HERE / "objects"):
        sys.exit("--crate needs --into, the folder for its object, and no --only")
    if crate and not (crate / "Cargo.lock").exists():
        sys.exit(f"{crate} has no Cargo.lock: run `cargo generate-lockfile` there")
    arguments.into.mkdir(parents=True, exist_ok=True)
    for name in [crate.name] if crate else arguments.only or [*CONTROLLERS, FAULTS]:
        with tempfile.TemporaryDirectory() as folder:
            made = build(name, Path(folder), crate)
        (arguments.into / f"{name}.o").write_bytes(made)
        print(f"{name}: {len(made)} bytes, sha256 {hashlib.sha256(made).hexdigest()}")
    if not arguments.only and arguments.into == HERE / "objects":
        (HERE / "src" / "table.rs").write_text(table(arguments.into), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
