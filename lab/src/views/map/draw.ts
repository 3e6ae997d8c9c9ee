// A map as SVG: the page shows it, and exports it.

import { svgDocument, svgText, type Palette } from "../../export/svg";
import { rateText, timeText } from "../../ui/quantity";
import { standIn, type Point } from "./compute";
import type { Range } from "./question";

export interface Picture {
  candidates: readonly string[];
  steps: number;
  x: Range;
  y: Range;
  /** Undefined where nothing is known yet. */
  at: (column: number, row: number) => Point | undefined;
  title: string;
}

export interface Frame {
  width: number;
  height: number;
  left: number;
  top: number;
  /** Of a cell. */
  cell: number;
}

export const LETTERS = "ABCD";

/** Where the cells are, for a width: square cells, as large as there is room. */
export function frameOf(width: number, steps: number, candidates: number): Frame {
  const left = 66;
  const cell = Math.max(4, Math.min((width - left - 12) / steps, 640 / steps));
  const top = 14;
  return { width, height: top + cell * steps + 50 + 20 * (candidates + 1), left, top, cell };
}

/** How strong the colour is: from an eighth at a lead of nothing to all of it at 30 %. */
export function strength(ahead: number): number {
  return 0.2 + 0.8 * Math.min(Math.max(ahead, 0) / 0.3, 1);
}

/** Each candidate has a pattern of its own, so that colour is not needed. */
function patterns(palette: Palette, candidates: number): string {
  const ink = palette.ground;
  const marks = [
    "",
    `<path d="M-2 2L2 -2M0 8L8 0M6 10L10 6" stroke="${ink}" stroke-width="1.6"/>`,
    `<circle cx="4" cy="4" r="1.6" fill="${ink}"/>`,
    `<path d="M0 4H8" stroke="${ink}" stroke-width="1.6"/>`,
  ];
  const own = Array.from({ length: candidates }, (_, at) => {
    const colour = palette.series[at % palette.series.length] ?? palette.text;
    return `<pattern id="map-${String(at)}" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8" fill="${colour}"/>${marks[at % marks.length] ?? ""}</pattern>`;
  });
  const none = `<pattern id="map-none" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="7" height="7" fill="${palette.ground}"/><path d="M0 0V7M0 0H7" stroke="${palette.quiet}" stroke-width="1"/></pattern>`;
  return `<defs>${own.join("")}${none}</defs>`;
}

/** A number that is round to people: at most two digits that count. */
function round2(value: number): number {
  return Number(value.toPrecision(2));
}

export function mapSvg(picture: Picture, palette: Palette, width: number): string {
  const { candidates, steps, x, y, at } = picture;
  const frame = frameOf(width, steps, candidates.length);
  const { left, top, cell } = frame;
  const side = cell * steps;
  const parts: string[] = [patterns(palette, candidates.length)];
  for (let row = 0; row < steps; row += 1) {
    for (let column = 0; column < steps; column += 1) {
      const own = at(column, row);
      const point = own ?? standIn(column, row, steps, at);
      if (point === undefined) continue;
      const where = `x="${(left + column * cell).toFixed(2)}" y="${(top + (steps - 1 - row) * cell).toFixed(2)}" width="${(cell + 0.05).toFixed(2)}" height="${(cell + 0.05).toFixed(2)}"`;
      const { winner, ahead } = point.ranking;
      const opacity = (winner === null ? 0.75 : strength(ahead)) * (own === undefined ? 0.7 : 1);
      parts.push(`<rect ${where} fill="url(#map-${winner === null ? "none" : String(winner)})" opacity="${opacity.toFixed(2)}"/>`);
      if (own !== undefined && winner !== null && (cell >= 15 || (column % 2 === 0 && row % 2 === 0 && cell >= 9))) {
        const size = Math.min(13, Math.max(9, cell * 0.5));
        parts.push(
          `<text x="${(left + (column + 0.5) * cell).toFixed(2)}" y="${(top + (steps - 0.5 - row) * cell + size * 0.36).toFixed(2)}" font-size="${size.toFixed(1)}" font-weight="700" text-anchor="middle" fill="${palette.text}" stroke="${palette.ground}" stroke-width="2.5" paint-order="stroke">${LETTERS[winner] ?? ""}</text>`,
        );
      }
    }
  }
  parts.push(`<rect x="${String(left)}" y="${String(top)}" width="${side.toFixed(2)}" height="${side.toFixed(2)}" fill="none" stroke="${palette.line}"/>`);
  const count = Math.max(2, Math.min(5, Math.floor(side / 95)));
  for (let tick = 0; tick <= count; tick += 1) {
    const place = (tick / count) * (steps - 1);
    const across = left + (place + 0.5) * cell;
    const up = top + (steps - 0.5 - place) * cell;
    const rate = x.low * (x.high / x.low) ** (tick / count);
    const rtt = y.low * (y.high / y.low) ** (tick / count);
    parts.push(
      `<path d="M${across.toFixed(1)} ${(top + side).toFixed(1)}v4M${String(left)} ${up.toFixed(1)}h-4" stroke="${palette.quiet}"/>`,
      svgText(across, top + side + 17, rateText(round2(rate)), palette.quiet, { anchor: "middle", size: 11 }),
      svgText(left - 7, up + 4, timeText(round2(rtt)), palette.quiet, { anchor: "end", size: 11 }),
    );
  }
  parts.push(
    svgText(left + side / 2, top + side + 34, "rate of the bottleneck", palette.text, { anchor: "middle" }),
    svgText(12, top + side / 2, "round-trip time", palette.text, { anchor: "middle", turn: -90 }),
  );
  for (const [index, name] of [...candidates, "no clear winner"].entries()) {
    const row = top + side + 54 + 20 * index;
    const none = index === candidates.length;
    parts.push(
      `<rect x="${String(left)}" y="${row.toFixed(1)}" width="26" height="14" fill="url(#map-${none ? "none" : String(index)})" stroke="${palette.line}"/>`,
      svgText(left + 34, row + 11.5, none ? name : `${LETTERS[index] ?? ""}  ${name}`, palette.text),
    );
  }
  return svgDocument(frame.width, frame.height, palette, `${picture.title}: ${candidates.join(", ")}`, parts);
}


