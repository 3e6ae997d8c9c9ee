"""Checks that BBRv3, the draft's and Google's, could be compiled for BPF, by what the compiler put out.

    python crates/cc/tests/bpf/check.py [--mistakes]

BPF has 64-bit integers. It has no product of 128 bits, no floating point, no panic, no signed division before
its fourth version, and calls no function by its address. The verifier must see the bound of each loop, and
the stack has 512 bytes. The check compiles the events and limits of the controller, optimised, and reads
LLVM's intermediate code, because in the code of this machine's processor all of that exists. There must be no
loop at all.

With --mistakes the program has one function for each of these things, and each must be found. Needs cargo.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
STACK_BYTES = 512
# What LLVM provides in its intermediate code and makes plain BPF instructions of, or nothing.
HARMLESS = re.compile(
    r"llvm\.("
    r"[us]max|[us]min|ctlz|[us]add\.sat|[us]sub\.sat|[us](add|sub)\.with\.overflow|abs|bswap|ctpop|fshl|fshr"
    r"|memcpy|memmove|memset|lifetime\.(start|end)|experimental\.noalias\.scope\.decl|assume|expect|dbg\.\w+"
    r"|vector\.reduce\.\w+"
    r")\."
    r"|llvm\.(assume|experimental\.noalias\.scope\.decl)$"
)
FLOAT = re.compile(r"(?<![%@\w.\"])(half|bfloat|float|double|fp128|x86_fp80)\b")
INTEGER = re.compile(r"(?<![%@\w.\"])i(\d+)\b")


def functions(code: str) -> dict[str, list[str]]:
    """The lines of each function that is defined."""
    found = {}
    for match in re.finditer(r"^define [^\n]*?@\"?([\w.$]+)\"?\([^\n]*\{\n(.*?)^\}", code, flags=re.S | re.M):
        lines = (line.partition(" ;")[0].rstrip() for line in match[2].splitlines())
        found[match[1]] = [line for line in lines if not line.startswith(";")]
    return found


def complaints(code: str) -> dict[str, set[str]]:
    """For each function what BPF does not have."""
    defined = functions(code)
    if not defined:
        return {"": {"there is no function"}}
    found: dict[str, set[str]] = {}
    for name, lines in defined.items():
        message = {message for line in lines for message in of_line(line, set(defined))}
        if has_loop(lines):
            message.add("a loop")
        if (stack := sum(bytes_of(line) for line in lines)) > STACK_BYTES:
            message.add(f"{stack} bytes of stack")
        if message:
            found[name] = message
    return found


def of_line(line: str, defined: set[str]) -> set[str]:
    """What BPF does not have in a line."""
    message = set()
    code = re.sub(r"![\w.]+|#\d+|\"[^\"]*\"", "", line)
    if match := FLOAT.search(code):
        message.add(f"floating point ({match[1]})")
    if any(int(bits) > 64 for bits in INTEGER.findall(code)):
        message.add("an integer of more than 64 bits")
    if re.search(r"= (exact )?(sdiv|srem)\b", code):
        message.add("a signed division")
    if re.search(r"\b(call|invoke)\b", code):
        called = re.search(r"@\"?([\w.$]+)\"?\(", line)
        if called is None:
            message.add("a call by address")
        elif "panic" in called[1]:
            message.add("a panic")
        elif called[1].startswith("llvm."):
            if "mul" in called[1]:
                message.add(f"a product that needs 128 bits ({called[1]})")
            elif not HARMLESS.match(called[1]):
                message.add(f"{called[1]}, which is not known to be harmless")
            elif called[1].startswith("llvm.mem") and not re.search(r", i64 \d+, i1 \w+\)", code):
                message.add("a copy of a length that is not constant")
        elif called[1] not in defined:
            message.add(f"a call to {called[1]}")
    return message


def bytes_of(line: str) -> int:
    """Bytes of a variable on the stack."""
    if match := re.search(r"= alloca \[(\d+) x i8\]", line):
        return int(match[1])
    return 8 if "= alloca " in line else 0


def has_loop(lines: list[str]) -> bool:
    """Whether some block can be reached from itself."""
    steps: dict[str, set[str]] = {}
    block = "start"
    for line in lines:
        if label := re.match(r"\"?([\w.$-]+)\"?:", line):
            block = label[1]
        # `br`, and `switch`, which may take several lines.
        for target in re.findall(r"label %\"?([\w.$-]+)\"?", line):
            steps.setdefault(block, set()).add(target)
    for begin in steps:
        reached, todo = set[str](), [begin]
        while todo:
            for following in steps.get(todo.pop(), set()) - reached:
                reached.add(following)
                todo.append(following)
        if begin in reached:
            return True
    return False


def compiled(mistakes: bool, target: Path) -> str:
    """LLVM's intermediate code of the controller."""
    command = ["cargo", "rustc", "--release", "--locked", "--quiet", "--lib"]
    command += ["--manifest-path", str(HERE / "Cargo.toml"), "--target-dir", str(target)]
    # A file for each: cargo does not compile again what it has compiled.
    file = target / ("mistakes.ll" if mistakes else "bpf.ll")
    command += ["--features", "mistakes"] * mistakes + ["--", f"--emit=llvm-ir={file}"]
    # The profile is the manifest's, whatever the caller's environment says.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CARGO_PROFILE_")}
    subprocess.run(command, check=True, env=clean)
    return file.read_text(encoding="utf-8")


def main() -> int:
    """The command line; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mistakes", action="store_true", help="compile mistakes, which must all be found")
    parser.add_argument("--target-dir", type=Path, help="keep what is compiled here (default: nowhere)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        code = compiled(arguments.mistakes, (arguments.target_dir or Path(folder)).absolute())
    found = complaints(code)
    for name, message in sorted(found.items()):
        print(f"{name}: {', '.join(sorted(message))}")
    names = functions(code)
    if arguments.mistakes:
        missed = {name for name in names if name.startswith("mistake_")} - set(found)
        print(f"not found: {', '.join(sorted(missed))}" if missed else "every mistake is found")
        return 1 if missed else 0
    if not found:
        print(f"{len(names)} functions, nothing that BPF does not have")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
