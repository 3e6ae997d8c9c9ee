"""Runs `fullpipe` without any capability, and where no user namespace can be made either.

A program of its own with few imports: only a process of one thread can enter a user namespace.
"""

import ctypes
import os
import sys
from pathlib import Path

# Exit code where rights cannot be taken away.
CANNOT_DROP = 77

_CLONE_NEWUSER = 0x10000000
_PR_CAPBSET_DROP = 24


def drop_rights() -> None:
    """Enters a user namespace that allows no further one; what it executes has no capability in it."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "cannot make a user namespace")
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1", encoding="ascii")
    Path("/proc/sys/user/max_user_namespaces").write_text("0", encoding="ascii")
    for capability in range(64):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


if __name__ == "__main__":
    try:
        drop_rights()
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(CANNOT_DROP)
    os.execv(sys.executable, [sys.executable, "-m", "fullpipe", *sys.argv[1:]])
