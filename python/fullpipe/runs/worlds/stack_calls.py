"""What an adapter asks its machine for behind our back: the time, and random numbers.

As a program, with a report and a command, it runs the command in its place, and counts its system calls by
ptrace. It uses only the standard library, and is started by its path. Linux's vDSO, which tells the time
without a system call, is hidden from the command, whose libc or runtime then makes one. Not seen are the
processor's own instructions (RDTSC, RDRAND), and reads through io_uring. The report is a file of counters,
which are kept even if this process is killed; they begin with the command's first write to what its standard
output is when it starts, by whatever number, so that a language's start is not counted. A language's runtime
may ask later, too: Python's buffered input reads the clock.
"""

import ctypes
import mmap
import os
import platform
import signal
import sys
from pathlib import Path
from struct import Struct

CALLS = ("clock_gettime", "gettimeofday", "time", "getrandom", "/dev/urandom")
# The first counter says that the command has answered, so that the others count.
COUNTERS = Struct(f"<{1 + len(CALLS)}Q")
# Exit code where the processor's calls are not known; the command is not started.
UNKNOWN = 3
# By processor: what counts, and the calls that read and that write.
_NUMBERS = {
    "x86_64": ({228: 0, 96: 1, 201: 2, 318: 3}, (0, 17, 19), (1, 20)),
    "aarch64": ({113: 0, 169: 1, 278: 3}, (63, 65, 67), (64, 66)),
}
# /dev/random and /dev/urandom, whatever call opened them (Linux: Documentation/admin-guide/devices.txt).
_DEVICES = (os.makedev(1, 8), os.makedev(1, 9))
_TRACEME, _SYSCALL, _SETOPTIONS, _GET_SYSCALL_INFO = 0, 24, 0x4200, 0x420E
# Marks stops at system calls, follows forks, threads and further programs, and ends them with this process.
_OPTIONS = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x100000
_EVENT_EXEC, _ENTRY, _WALL = 4, 1, 0x40000000
_INFO = Struct("<B23xQ6Q16x")
_VECTOR = Struct("<QQ")
_IGNORE, _VDSO = 1, 33

_ptrace = ctypes.CDLL(None, use_errno=True).ptrace
_ptrace.restype = ctypes.c_long
_ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)


def counted(report: bytes) -> dict[str, int] | None:
    """The calls that were made, of a report; None if nothing was seen."""
    if len(report) != COUNTERS.size:
        return None
    answered, *counts = COUNTERS.unpack(report)
    return {name: count for name, count in zip(CALLS, counts, strict=True) if count} if answered else None


def is_known() -> bool:
    """Whether the calls of this processor are known."""
    return platform.machine() in _NUMBERS


def _watch(child: int, counters: mmap.mmap) -> int:
    """Counts until the child ends; returns its exit code."""
    numbers, reading, writing = _NUMBERS[platform.machine()]
    info = ctypes.create_string_buffer(_INFO.size)
    output = os.fstat(1)
    counts = [0] * (1 + len(CALLS))
    _, status = os.waitpid(child, 0)
    if not os.WIFSTOPPED(status):
        return os.waitstatus_to_exitcode(status)
    _ptrace(_SETOPTIONS, child, None, _OPTIONS)
    _ptrace(_SYSCALL, child, None, None)
    while True:
        pid, status = os.waitpid(-1, _WALL)
        if not os.WIFSTOPPED(status):
            if pid == child:
                return os.waitstatus_to_exitcode(status)
            continue
        stopped, passed_on = os.WSTOPSIG(status), 0
        if stopped == signal.SIGTRAP | 0x80:
            _ptrace(_GET_SYSCALL_INFO, pid, ctypes.sizeof(info), ctypes.addressof(info))
            kind, number, first, *_ = _INFO.unpack(info.raw)
            if kind == _ENTRY:
                which = numbers.get(number)
                if number in writing and not counts[0]:
                    written = _file(pid, first)
                    counts[0] = int(written is not None and os.path.samestat(written, output))
                elif number in reading and counts[0] and _device(pid, first) in _DEVICES:
                    which = CALLS.index("/dev/urandom")
                if which is not None and counts[0]:
                    counts[1 + which] += 1
                COUNTERS.pack_into(counters, 0, *counts)
        elif status >> 16 == _EVENT_EXEC:
            _hide_vdso(pid)
            # A script may have written before it became the adapter.
            counts = [0] * len(counts) if pid == child else counts
        elif status >> 16 == 0 and stopped != signal.SIGSTOP:
            passed_on = stopped
        _ptrace(_SYSCALL, pid, None, passed_on)


def _file(pid: int, number: int) -> os.stat_result | None:
    """What a process has open as the file of this number."""
    try:
        return Path(f"/proc/{pid}/fd/{number}").stat()
    except OSError:
        return None


def _device(pid: int, number: int) -> int:
    """The device that a process has open as this file; 0 if it is none."""
    found = _file(pid, number)
    return 0 if found is None else found.st_rdev


def _hide_vdso(pid: int) -> None:
    """Makes the program that begins look as if its kernel had none.

    Raises:
        RuntimeError: The auxiliary vector, which names the vDSO, is not on the stack.
    """
    vector = Path(f"/proc/{pid}/auxv").read_bytes()
    keys = [key for key, _ in _VECTOR.iter_unpack(vector)]
    if _VDSO not in keys:
        return
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        if line.endswith("[stack]"):
            start, end = (int(word, 16) for word in line.split()[0].split("-"))
            with Path(f"/proc/{pid}/mem").open("r+b", buffering=0) as memory:
                memory.seek(start)
                at = memory.read(end - start).rfind(vector)
                if at >= 0:
                    memory.seek(start + at + keys.index(_VDSO) * _VECTOR.size)
                    memory.write(_IGNORE.to_bytes(8, "little"))
                    return
    raise RuntimeError("the vDSO, which tells the time without a system call, cannot be hidden")


def main(report: str, command: list[str]) -> int:
    """Runs a command, and counts in the report; returns its exit code, or `UNKNOWN`."""
    if not is_known():
        return UNKNOWN
    with Path(report).open("r+b") as file, mmap.mmap(file.fileno(), COUNTERS.size) as counters:
        child = os.fork()
        if child == 0:
            if _ptrace(_TRACEME, 0, None, None):
                os.write(2, b"the system does not let it be traced\n")
                os._exit(1)
            os.kill(os.getpid(), signal.SIGSTOP)
            os.execv(command[0], command)
        return _watch(child, counters)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
