// The numbers of a claim beside those of the paper and of Linux, as a drawing.

import { svgDocument, svgText, type Palette } from "../../export/svg";
import { digits, type ClaimNumber } from "./measure";

const ROW = 58;

/** Which rows share a scale: those of the same measure and unit. */
function equal(one: ClaimNumber, other: ClaimNumber): boolean {
  return one.of === other.of && one.unit === other.unit;
}

/**
 * The value that the full width of each row stands for. A row has none (null), and gets no bar, if there is nothing to compare it with:
 * the paper and the kernel give no value, and no other row has the same measure. A share is always out of 100 per cent.
 */
function scales(numbers: readonly ClaimNumber[], here: readonly number[]): (number | null)[] {
  const most = numbers.map((one, row) => Math.max(Number.isNaN(here[row] ?? NaN) ? 0 : (here[row] ?? 0), ...(one.paper ?? []), one.kernel ?? 0, 1e-9));
  return numbers.map((one) => {
    if (one.of === "share_pct") return 100;
    const kind = numbers.filter((other) => equal(one, other));
    if (kind.length === 1 && one.paper === null && one.kernel === null) return null;
    return 1.08 * Math.max(...numbers.map((other, row) => (equal(one, other) ? (most[row] ?? 0) : 0)));
  });
}

/** A row for each number: a bar for this page's, a band or a line for the paper's, a triangle for the kernel's. */
export function numbersSvg(numbers: readonly ClaimNumber[], here: readonly number[], palette: Palette, width: number, title: string): string {
  const left = 8;
  const right = width - 8;
  const ink = { here: palette.series[0] ?? palette.text, paper: palette.series[1] ?? palette.text, kernel: palette.series[2] ?? palette.text };
  const kernel = numbers.some((one) => one.kernel !== null);
  const parts: string[] = [];
  const legend: [string, string, (x: number) => string][] = [
    ["here", ink.here, (x) => `<rect x="${String(x)}" y="7" width="16" height="9" fill="${ink.here}"/>`],
    ["paper", ink.paper, (x) => `<rect x="${String(x + 4)}" y="4" width="3" height="15" fill="${ink.paper}"/>`],
    ...(kernel ? [["Linux", ink.kernel, (x: number) => triangle(x + 8, 6, ink.kernel, palette.ground)] as [string, string, (x: number) => string]] : []),
  ];
  for (const [at, [name, , mark]] of legend.entries()) {
    const x = left + at * 76;
    parts.push(mark(x), svgText(x + 22, 16, name, palette.text, { size: 12 }));
  }
  const fulls = scales(numbers, here);
  for (const [row, number] of numbers.entries()) {
    const y = 30 + row * ROW;
    const value = here[row] ?? NaN;
    const full = fulls[row] ?? null;
    const x = (one: number) => left + (Math.max(one, 0) / (full ?? 1)) * (right - left);
    const message = [
      number.paper === null ? (number.paper_says === "" ? "" : `paper: ${number.paper_says}`) : `paper ${range(number.paper)}`,
      number.kernel === null ? "" : `Linux ${digits(number.kernel)}`,
    ].filter(Boolean);
    parts.push(
      svgText(left, y + 11, `${number.name}, ${number.unit}`, palette.text, { size: 12 }),
      svgText(right, y + 11, digits(value), palette.text, { size: 12, anchor: "end", bold: true }),
      svgText(left, y + 42, message.join(" · "), palette.quiet, { size: 11 }),
    );
    if (full === null) continue;
    parts.push(`<rect x="${String(left)}" y="${String(y + 19)}" width="${String(right - left)}" height="9" fill="${palette.line}" fill-opacity="0.5"/>`);
    if (!Number.isNaN(value)) parts.push(`<rect x="${String(left)}" y="${String(y + 19)}" width="${(x(value) - left).toFixed(1)}" height="9" fill="${ink.here}"/>`);
    if (number.paper !== null) {
      const [low = 0, high = low] = number.paper;
      if (high > low) parts.push(`<rect x="${x(low).toFixed(1)}" y="${String(y + 16)}" width="${(x(high) - x(low)).toFixed(1)}" height="15" fill="${ink.paper}" fill-opacity="0.35"/>`);
      for (const end of new Set([low, high])) {
        parts.push(`<rect x="${(x(end) - 1.5).toFixed(1)}" y="${String(y + 16)}" width="3" height="15" fill="${ink.paper}" stroke="${palette.ground}" stroke-width="0.7"/>`);
      }
    }
    if (number.kernel !== null) parts.push(triangle(x(number.kernel), y + 20, ink.kernel, palette.ground));
  }
  return svgDocument(width, 34 + numbers.length * ROW, palette, title, parts);
}

function triangle(x: number, y: number, fill: string, edge: string): string {
  return `<path d="M${x.toFixed(1)} ${String(y)}l6 11h-12z" fill="${fill}" stroke="${edge}" stroke-width="1"/>`;
}

export function range(paper: readonly number[]): string {
  const [low, high] = paper;
  return low === high ? digits(low) : `${digits(low)} to ${digits(high)}`;
}
