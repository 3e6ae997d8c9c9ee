"""Prints what CHANGELOG.md has about a version. Fails without it, and if Cargo.toml has another version."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def notes(changelog: str, version: str) -> str | None:
    """What a changelog says of a version."""
    found = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## \[|\Z)", changelog, re.M | re.S)
    return found[1].strip() if found else None


def main(version: str) -> None:
    """Checks and prints."""
    ours = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    if version != ours:
        sys.exit(f"the tag is of version {version}, and Cargo.toml of {ours}")
    found = notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    if not found:
        sys.exit(f"CHANGELOG.md has no section [{version}]")
    print(found)


if __name__ == "__main__":
    main(sys.argv[1])
