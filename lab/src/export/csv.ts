// Tables as CSV (RFC 4180): commas, quotes where they are needed, and numbers with twelve digits that count:
// more are rounding noise. Whole numbers, as of bytes, have all of theirs.

import { aligned, type ChartContent, type ValueKind } from "../charts/series";

const UNITS: Record<ValueKind, string> = {
  rate: "bit/s", time: "s", bytes: "bytes", segments: "segments", share: "fraction", plain: "",
};

type Cell = string | number | null | undefined;

function cell(value: Cell): string {
  if (value === null || value === undefined || (typeof value === "number" && !Number.isFinite(value))) return "";
  if (typeof value === "number") return String(Number.isInteger(value) ? value : Number(value.toPrecision(12)));
  // A spreadsheet takes a text that begins so for a formula.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv(header: readonly string[], rows: Iterable<readonly Cell[]>): string {
  const lines = [header.map(cell).join(",")];
  for (const row of rows) lines.push(row.map(cell).join(","));
  return `${lines.join("\r\n")}\r\n`;
}

/** The lines of a chart: a column each, after that of the times. */
export function chartCsv(content: Pick<ChartContent, "lines" | "kind" | "title">): string {
  const { times, columns } = aligned(content.lines);
  const unit = UNITS[content.kind] === "" ? "" : ` [${UNITS[content.kind]}]`;
  const header = ["time [s]", ...content.lines.map(({ label }) => `${content.title}, ${label}${unit}`)];
  return csv(header, Array.from(times, (time, row) => [time, ...columns.map((column) => column[row])]));
}
