"""A table that fits its terminal: numbers are never cut.

If the window is wide enough, a row of the table is a row of the terminal. If it is not, texts wrap at spaces.
If that is not enough either, the table is transposed: it has a line for each column, and as many rows side by
side as fit, block after block.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from fullpipe.text import lines

# Between two columns of `box.SIMPLE_HEAD`: a space on each side of a separator; rich pads both edges, too.
_GAP, _EDGES = 3, 2
# Text narrower than this is hard to read; a transposed table is easier.
_LEAST_TEXT = 14
# A row with a cell wider than this gets a block of its own, and its text is left-aligned.
_SENTENCE = 32


@dataclass(frozen=True)
class Column:
    """A column: its heading (which may have a second line), and whether it holds numbers."""

    heading: str
    number: bool = False
    # Its name in a transposed table, where the heading relies on the column before: "RTT p95", not "p95".
    alone: str = ""

    @property
    def in_a_line(self) -> str:
        """The heading and the unit below it in one line."""
        return self.alone or in_a_line(*self.heading.split("\n"))


class Fitting:
    """A table of text and numbers that chooses its layout when it is printed."""

    def __init__(self, *headings: str, show_header: bool = True) -> None:
        self.columns = [Column(heading) for heading in headings]
        self.rows: list[list[Text]] = []
        # Lines over the whole width, by the number of the row below them.
        self.headings: dict[int, Text] = {}
        self.show_header = show_header
        self.caption = ""

    def add_text(self, heading: str, *, alone: str = "") -> None:
        """Adds a column of text, which may wrap. `alone` is its name in a transposed table."""
        self.columns.append(Column(heading, alone=alone))

    def add_numbers(self, heading: str, unit: str = "", *, alone: str = "") -> None:
        """Adds a column of numbers, which never wrap. `alone` is its name in a transposed table."""
        alone = in_a_line(alone, *unit.split("\n")) if alone else ""
        self.columns.append(Column(f"{heading}\n{unit}" if unit else heading, number=True, alone=alone))

    def add_row(self, *cells: str | Text) -> None:
        """Adds a row with a cell for each column."""
        assert len(cells) == len(self.columns), "a row has a cell for each column"
        self.rows.append([_cell(cell) for cell in cells])

    def add_heading(self, *parts: Text) -> None:
        """Adds a line over the whole width, above the rows that are added next."""
        above = self.headings.get(len(self.rows))
        line = Text.assemble(*parts)
        self.headings[len(self.rows)] = line if above is None else Text.assemble(above, "\n", line)

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, options.max_width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._widths(options.max_width)
        if widths is not None:
            yield from self._upright(widths)
        else:
            yield from self._transposed(options.max_width)
        if self.caption:
            yield Text(self.caption, style="dim italic")

    def _widths(self, room: int) -> list[int] | None:
        """The width of each column; None if a number or the longest word does not fit."""
        room -= _GAP * (len(self.columns) - 1) + _EDGES
        longest, needed = [], []
        for at, column in enumerate(self.columns):
            cells = [row[at].plain for row in self.rows] + ([column.heading] if self.show_header else [])
            longest.append(max((_line_width(cell) for cell in cells), default=0))
            least = [_line_width(cell) if column.number else _word_width(cell) for cell in cells]
            needed.append(min(longest[-1], max([_LEAST_TEXT * (not column.number), *least])))
        if sum(needed) > room:
            return None
        # The remaining width goes first to the columns that need least, so that short texts do not wrap.
        widths, left = list(needed), room - sum(needed)
        wanting = sorted(range(len(widths)), key=lambda at: longest[at] - needed[at])
        for done, at in enumerate(wanting):
            share = left // (len(wanting) - done) if done < len(wanting) - 1 else left
            more = min(longest[at] - needed[at], share)
            widths[at] += more
            left -= more
        return widths

    def _upright(self, widths: Sequence[int]) -> Iterable[Table | Text]:
        """The rows as they are, one table from each heading to the next."""
        if not self.headings:
            yield self._part(widths, self.rows, show_header=self.show_header)
            return
        yield self._part(widths, self.rows[: min(self.headings)], show_header=self.show_header)
        starts = sorted(self.headings)
        for start, end in zip(starts, [*starts[1:], None], strict=True):
            yield self.headings[start]
            if rows := self.rows[start:end]:
                yield self._part(widths, rows, show_header=False)

    def _part(self, widths: Sequence[int], rows: Sequence[Sequence[Text]], *, show_header: bool) -> Table:
        table = _empty(show_header)
        for column, width in zip(self.columns, widths, strict=True):
            justify: JustifyMethod = "right" if column.number else "left"
            table.add_column(column.heading, width=width, justify=justify, vertical="top", overflow="fold")
        for row in rows:
            table.add_row(*row)
        return table

    def _transposed(self, room: int) -> Iterable[Table | Text | str]:
        """One line for each column, from each heading to the next."""
        starts = sorted({0, *self.headings})
        for start, end in zip(starts, [*starts[1:], None], strict=True):
            if start:
                yield ""
            if heading := self.headings.get(start):
                yield heading
            yield from self._transposed_part(self.rows[start:end], room)

    def _transposed_part(self, rows: Sequence[Sequence[Text]], room: int) -> Iterable[Table | str]:
        names = [column.in_a_line for column in self.columns]
        first = min(max(map(_line_width, names), default=0), max(8, room // 3))
        room = max(1, room - first - _GAP - _EDGES)
        widths = [max(1, min(room, max(_line_width(cell.plain) for cell in row))) for row in rows]
        for number, block in enumerate(_blocks(widths, room)):
            if number:
                yield ""
            yield self._block([rows[at] for at in block], [widths[at] for at in block], names, first)

    def _block(
        self, rows: Sequence[Sequence[Text]], widths: Sequence[int], names: Sequence[str], first: int
    ) -> Table:
        """Some rows side by side: the first cell of each is its heading."""
        table = _empty(True)
        table.add_column(names[0], width=first, overflow="fold")
        sentences = len(rows) == 1 and widths[0] > _SENTENCE
        for row, width in zip(rows, widths, strict=True):
            table.add_column(row[0], width=width, justify="left" if sentences else "right", overflow="fold")
        for at in range(1, len(names)):
            cells = [row[at] for row in rows]
            if any(cell.plain for cell in cells):
                table.add_row(names[at], *cells)
        return table


@dataclass(frozen=True)
class Either:
    """One layout if it fits the terminal, and another if it does not."""

    wide: Fitting
    narrow: Fitting

    @property
    def row_count(self) -> int:
        """The number of rows of the wide layout."""
        return self.wide.row_count

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, options.max_width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.wide if self.wide._widths(options.max_width) is not None else self.narrow


def _cell(given: str | Text) -> Text:
    """A cell with printable text of a bounded length, so that its width is known before it is printed."""
    cell = given if isinstance(given, Text) else Text(given)
    plain = lines(cell.plain)
    return cell if plain == cell.plain else Text(plain, style=cell.style)


def _empty(show_header: bool) -> Table:
    return Table(
        box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False, show_header=show_header
    )


def in_a_line(*parts: str) -> str:
    """The lines of a heading joined: "Queue, ms (model)"."""
    return ", ".join(filter(None, parts)).replace(", (", " (")


def _blocks(widths: Sequence[int], room: int) -> list[list[int]]:
    """Numbers of rows, in groups as large as fit."""
    blocks: list[list[int]] = []
    left = 0
    for at, width in enumerate(widths):
        if not blocks or left < width + _GAP:
            blocks.append([])
            left = room + _GAP
        blocks[-1].append(at)
        left -= width + _GAP
    return blocks


def _line_width(text: str) -> int:
    return max((cell_len(line) for line in text.split("\n")), default=0)


def _word_width(text: str) -> int:
    return max((cell_len(word) for word in text.split()), default=0)
