// Charts as SVG, drawn from the data: what is on a canvas is not asked.

import { cornersOf, farText, mostOf, phaseName, shown, unitFor, type ChartContent, type Line } from "../charts/series";
import { dashOf } from "../charts/theme";

/** Colours as CSS writes them. */
export interface Palette {
  ground: string;
  text: string;
  quiet: string;
  line: string;
  series: readonly string[];
}

export const LIGHT: Palette = {
  ground: "#ffffff",
  text: "#16191d",
  quiet: "#59616b",
  line: "#d4d8de",
  series: ["#0072b2", "#d55e00", "#009e73", "#a8578b", "#7a6a00"],
};

const FONT = 'font-family="system-ui, DejaVu Sans, sans-serif"';

export function escaped(text: string): string {
  // XML has no other control characters, not even as references.
  return text
    // eslint-disable-next-line no-control-regex
    .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

function number(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** An SVG document. */
export function svgDocument(width: number, height: number, palette: Palette, title: string, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${number(width)}" height="${number(height)}" viewBox="0 0 ${number(width)} ${number(height)}" role="img" ${FONT} font-size="12">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="100%" height="100%" fill="${palette.ground}"/>`,
    ...parts,
    "</svg>",
    "",
  ].join("\n");
}

export function svgText(
  x: number, y: number, text: string, fill: string, more: { anchor?: "start" | "middle" | "end"; size?: number; bold?: boolean; turn?: number } = {},
): string {
  const turn = more.turn === undefined ? "" : ` transform="rotate(${String(more.turn)} ${number(x)} ${number(y)})"`;
  return `<text x="${number(x)}" y="${number(y)}" fill="${fill}" text-anchor="${more.anchor ?? "start"}"${more.size === undefined ? "" : ` font-size="${String(more.size)}"`}${more.bold === true ? ' font-weight="600"' : ""}${turn}>${escaped(text)}</text>`;
}

/** Round values between two ends: about `count` of them. */
export function ticks(from: number, to: number, count: number): number[] {
  const span = to - from;
  if (!(span > 0) || !Number.isFinite(span)) return [from];
  const rough = span / Math.max(count, 1);
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * size).find((one) => one >= rough * 0.999) ?? size * 10;
  const found: number[] = [];
  for (let index = Math.ceil(from / step - 1e-9); index * step <= to + step * 1e-9; index += 1) {
    found.push(Number((index * step).toPrecision(12)));
  }
  return found;
}

/**
 * The points of a line for a width in pixels: of each pixel's values the first, the least, the most and the last, so that nothing
 * that could be seen is lost. Runs without a value part the pieces.
 */
export function piecesOf(
  line: Pick<Line, "x" | "y">, from: number, to: number, width: number,
): [x: number, y: number][][] {
  const pieces: [number, number][][] = [];
  let piece: [number, number][] = [];
  let bucket = -1;
  let kept: { first: number; least: number; most: number; last: number } | null = null;
  const flush = () => {
    if (kept === null) return;
    const order = [...new Set([kept.first, kept.least, kept.most, kept.last])].sort((a, b) => a - b);
    for (const at of order) piece.push([line.x[at] ?? 0, line.y[at] ?? 0]);
    kept = null;
  };
  const end = () => {
    flush();
    if (piece.length > 0) pieces.push(piece);
    piece = [];
  };
  // One value beyond each edge, so that lines reach it.
  let start = 0;
  while (start + 1 < line.x.length && (line.x[start + 1] ?? Infinity) < from) start += 1;
  for (let at = start; at < line.x.length; at += 1) {
    const x = line.x[at] ?? NaN;
    const y = line.y[at] ?? NaN;
    if (Number.isNaN(y) || Number.isNaN(x)) {
      end();
    } else {
      const now = Math.floor(((x - from) / (to - from)) * width);
      if (kept === null || now !== bucket) {
        flush();
        bucket = now;
        kept = { first: at, least: at, most: at, last: at };
      } else {
        if (y < (line.y[kept.least] ?? 0)) kept.least = at;
        if (y > (line.y[kept.most] ?? 0)) kept.most = at;
        kept.last = at;
      }
    }
    if (x > to) break;
  }
  end();
  return pieces;
}

export interface ChartSize {
  width: number;
  height: number;
}

/** A chart over time: axes, lines, phases, references, marks and a legend. */
export function chartSvg(
  content: ChartContent, palette: Palette = LIGHT, size: ChartSize = { width: 900, height: 380 }, zoom: readonly [number, number] = content.extent,
): string {
  const listed = content.lines.filter(({ unlisted }) => unlisted !== true);
  const lanes = content.lanes ?? [];
  const left = 64;
  const right = size.width - 16;
  const top = 34 + 16 * lanes.length;
  const bottom = size.height - 44 - 18 * Math.ceil(listed.length / 4);
  const [from, to] = zoom[1] > zoom[0] ? zoom : [zoom[0], zoom[0] + 1];
  const unit = unitFor(content.kind, mostOf(content));
  const most = Math.max(mostOf(content), unit.scale * 1e-9) * 1.05;
  const xOf = (time: number) => left + ((time - from) / (to - from)) * (right - left);
  const yOf = (value: number) => bottom - (value / most) * (bottom - top);
  const colour = (series: number) => palette.series[series % palette.series.length] ?? palette.text;
  const parts: string[] = [
    svgText(left, 20, unit.unit === "" ? content.title : `${content.title}, ${unit.unit}`, palette.text, { size: 14, bold: true }),
    `<clipPath id="plot"><rect x="${number(left)}" y="${number(top - 16 * lanes.length)}" width="${number(right - left)}" height="${number(bottom - top + 16 * lanes.length)}"/></clipPath>`,
  ];
  for (const value of ticks(0, most / unit.scale, 6)) {
    const y = yOf(value * unit.scale);
    parts.push(
      `<line x1="${number(left)}" x2="${number(right)}" y1="${number(y)}" y2="${number(y)}" stroke="${palette.line}" stroke-width="0.7"/>`,
      svgText(left - 6, y + 4, String(value), palette.quiet, { anchor: "end" }),
    );
  }
  for (const time of ticks(from, to, 8)) {
    const x = xOf(time);
    parts.push(
      `<line x1="${number(x)}" x2="${number(x)}" y1="${number(bottom)}" y2="${number(bottom + 4)}" stroke="${palette.quiet}"/>`,
      svgText(x, bottom + 17, String(time), palette.quiet, { anchor: "middle" }),
    );
  }
  parts.push(svgText(right, bottom + 32, "time, s", palette.quiet, { anchor: "end" }));
  parts.push('<g clip-path="url(#plot)">');
  for (const [row, lane] of lanes.entries()) {
    for (const span of lane.spans) {
      const x = xOf(span.from);
      const width = xOf(span.to) - x;
      parts.push(
        `<rect x="${number(x)}" y="${number(top - 16 * (lanes.length - row))}" width="${number(Math.max(width, 0.5))}" height="13" fill="${colour(lane.series)}" fill-opacity="0.25" stroke="${palette.ground}"><title>${escaped(`${lane.label}: ${phaseName(span.name)}`)}</title></rect>`,
      );
      if (width > 8 * phaseName(span.name).length) {
        parts.push(svgText(x + 4, top - 16 * (lanes.length - row) + 10, phaseName(span.name), palette.text, { size: 10 }));
      }
    }
  }
  for (const mark of content.marks ?? []) {
    const x = xOf(mark.at);
    parts.push(
      `<line x1="${number(x)}" x2="${number(x)}" y1="${number(top)}" y2="${number(bottom)}" stroke="${palette.quiet}" stroke-dasharray="2 3"/>`,
      svgText(x + 3, top + 11, mark.label, palette.quiet, { size: 10 }),
    );
  }
  for (const [row, reference] of (content.references ?? []).entries()) {
    const corners = cornersOf(reference, from, to);
    const value = corners.at(-1)?.[1] ?? reference.value;
    const ink = reference.series === undefined ? palette.quiet : colour(reference.series);
    const points = corners.map(([time, level]) => `${number(xOf(time))},${number(yOf(level))}`).join(" ");
    const far = value > most;
    parts.push(
      `<polyline points="${points}" fill="none" stroke="${ink}" stroke-dasharray="6 4"/>`,
      svgText(right - 4, far ? top + 12 + 14 * row : yOf(value) - 4, far ? farText(content.kind, reference.label, value) : `${reference.label} ${shown(value, unit)}`, ink, { anchor: "end", size: 11 }),
    );
  }
  for (const line of content.lines) {
    const dash = dashOf(line.dash ?? line.series).join(" ");
    for (const piece of piecesOf(line, from, to, right - left)) {
      const path = piece.map(([x, y], at) => `${at === 0 ? "M" : "L"}${number(xOf(x))} ${number(yOf(y))}`).join("");
      parts.push(
        `<path d="${path}" fill="none" stroke="${colour(line.series)}" stroke-width="${String(line.width ?? 1.5)}" stroke-linejoin="round"${dash === "" ? "" : ` stroke-dasharray="${dash}"`}/>`,
      );
    }
  }
  parts.push("</g>", `<rect x="${number(left)}" y="${number(top)}" width="${number(right - left)}" height="${number(bottom - top)}" fill="none" stroke="${palette.line}"/>`);
  for (const [at, line] of listed.entries()) {
    const x = left + (at % 4) * ((right - left) / 4);
    const y = bottom + 46 + 18 * Math.floor(at / 4);
    const dash = dashOf(line.dash ?? line.series).join(" ");
    parts.push(
      `<line x1="${number(x)}" x2="${number(x + 24)}" y1="${number(y - 4)}" y2="${number(y - 4)}" stroke="${colour(line.series)}" stroke-width="2"${dash === "" ? "" : ` stroke-dasharray="${dash}"`}/>`,
      svgText(x + 30, y, line.label, palette.text),
    );
  }
  return svgDocument(size.width, size.height, palette, content.title, parts);
}
