"""A table that a command keeps up to date inside a document, between two lines that mark its place."""

from dataclasses import dataclass
from pathlib import Path

from fullpipe import files
from fullpipe.errors import mistake


@dataclass(frozen=True)
class Markers:
    """The two lines, e.g. `<!-- agreement:begin -->` and `<!-- agreement:end -->`."""

    name: str

    @property
    def begin(self) -> str:
        """The line before the table."""
        return f"<!-- {self.name}:begin -->"

    @property
    def end(self) -> str:
        """The line after it."""
        return f"<!-- {self.name}:end -->"

    def check(self, path: Path) -> None:
        """Raises `ScenarioError` if a table cannot be put into a document; called before the runs."""
        self._parts(path)
        if (reason := files.file_obstacle(path)) is not None:
            raise mistake("table", str(path), f"a file to write ({reason})", "name another file")

    def put(self, table: str, path: Path) -> None:
        """Puts a table, which ends with a newline, into a document."""
        before, after = self._parts(path)
        files.write_named(path, f"{before}{self.begin}\n{table}{self.end}{after}".encode())

    def _parts(self, path: Path) -> tuple[str, str]:
        """The text before and after the markers."""
        expected = f"a document with the lines {self.begin} and {self.end}"
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise mistake("table", str(path), expected, f"{reason}: name another") from None
        before, begin, rest = text.partition(self.begin)
        _, end, after = rest.partition(self.end)
        if not begin or not end:
            raise mistake("table", str(path), expected, "add the two where the table belongs")
        return before, after
