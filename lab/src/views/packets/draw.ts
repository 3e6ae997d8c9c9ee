// Draws a time-sequence graph: on a canvas for the screen, and in SVG for exports, from the same decimated data.

import { svgDocument, svgText, ticks, type Palette } from "../../export/svg";
import { sizeText } from "../../ui/quantity";
import { dataFor, decimate, Drawn, KINDS, NAMES, stepsOf, type Graph, type Kind, type View } from "./model";

export const MARGIN = { left: 62, right: 10, top: 10, bottom: 30 };

/** How a kind looks: the variable of its colour, and its least size in pixels: what matters is seen from afar, and drops are tall. */
export const LOOK: Record<Kind, { colour: string; wide: number; tall: number }> = {
  data: { colour: "--series-1", wide: 1, tall: 1 },
  sack: { colour: "--series-3", wide: 1.5, tall: 2 },
  lost: { colour: "--quiet", wide: 3, tall: 3 },
  retransmission: { colour: "--series-2", wide: 2.5, tall: 4 },
  timeout: { colour: "--wrong", wide: 4, tall: 6 },
  probe: { colour: "--series-5", wide: 3.5, tall: 6 },
  drop: { colour: "--series-4", wide: 2, tall: 10 },
};

export interface Colours {
  text: string;
  quiet: string;
  line: string;
  acks: string;
  edge: string;
  of: Record<Kind, string>;
}

export interface Painting {
  graph: Graph;
  view: View;
  shown: ReadonlySet<Kind>;
  width: number;
  height: number;
}

// Used by every frame.
const drawn = new Drawn();
const corners: number[] = [];

/** A rectangle for each mark, large enough to be seen; `put` gets pixels of the plot. */
function rectangles(painting: Painting, kind: Kind, put: (x: number, y: number, width: number, height: number) => void): void {
  const { graph, view, width, height } = painting;
  decimate(kind === "data" ? dataFor(graph, view, width) : graph.marks[kind], view, width, height, drawn);
  const { wide, tall } = LOOK[kind];
  for (let at = 0; at < drawn.count; at += 1) {
    const top = drawn.high[at] ?? 0;
    const size = Math.max((drawn.low[at] ?? 0) - top, tall);
    put((drawn.x[at] ?? 0) - (wide - 1) / 2, (top + (drawn.low[at] ?? 0) - size) / 2, wide, size);
  }
}

function stepped(painting: Painting, which: "acks" | "edge", to: (x: number, y: number, first: boolean) => void): void {
  stepsOf(painting.graph[which], painting.view, painting.width, painting.height, corners);
  for (let at = 0; at < corners.length; at += 2) to(corners[at] ?? 0, corners[at + 1] ?? 0, at === 0);
}

function timeTick(seconds: number, step: number): string {
  return step >= 1e-3 || seconds === 0 ? String(Number(seconds.toFixed(4))) : String(Number(seconds.toFixed(7)));
}

/** Paints the plot and its axes. `width` and `height` are those of the plot; the margins lie around it. */
export function paint(context: CanvasRenderingContext2D, painting: Painting, colours: Colours): void {
  const { view, shown, width, height } = painting;
  const { left, top } = MARGIN;
  context.clearRect(0, 0, width + left + MARGIN.right, height + top + MARGIN.bottom);
  context.save();
  context.translate(left, top);
  context.font = '11px system-ui, "DejaVu Sans", sans-serif';
  context.lineWidth = 1;
  context.strokeStyle = colours.line;
  context.fillStyle = colours.quiet;
  context.textAlign = "end";
  context.textBaseline = "middle";
  context.beginPath();
  for (const bytes of ticks(view.low, view.high, Math.max(2, height / 60))) {
    const y = Math.round(height - ((bytes - view.low) / (view.high - view.low)) * height) + 0.5;
    context.moveTo(0, y);
    context.lineTo(width, y);
    context.fillText(bytes === 0 ? "0" : sizeText(bytes), -6, y);
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  const times = ticks(view.from, view.to, Math.max(2, width / 90));
  const step = (times[1] ?? 1) - (times[0] ?? 0);
  for (const time of times) {
    const x = Math.round(((time - view.from) / (view.to - view.from)) * width) + 0.5;
    context.moveTo(x, 0);
    context.lineTo(x, height + 4);
    context.fillText(timeTick(time, step), x, height + 7);
  }
  context.stroke();
  context.textAlign = "end";
  context.fillText("s", width, height + 18);
  context.beginPath();
  context.rect(0, 0, width, height);
  context.clip();
  for (const which of ["edge", "acks"] as const) {
    context.strokeStyle = colours[which];
    context.setLineDash(which === "edge" ? [5, 4] : []);
    context.beginPath();
    stepped(painting, which, (x, y, first) => {
      if (first) context.moveTo(x, y);
      else context.lineTo(x, y);
    });
    context.stroke();
  }
  context.setLineDash([]);
  for (const kind of KINDS) {
    if (!shown.has(kind)) continue;
    context.fillStyle = colours.of[kind];
    rectangles(painting, kind, (x, y, across, up) => {
      context.fillRect(x, y, across, up);
    });
  }
  context.restore();
}

/** The same as SVG. */
export function graphSvg(painting: Omit<Painting, "width" | "height">, palette: Palette, title: string): string {
  const [width, height] = [860, 460];
  const all: Painting = { ...painting, width, height };
  const series = (index: number) => palette.series[index] ?? palette.text;
  const inks: Record<Kind, string> = {
    data: series(0), sack: series(2), lost: palette.quiet, retransmission: series(1), timeout: "#b3261e", probe: series(4), drop: series(3),
  };
  const { view } = painting;
  const parts = [svgText(MARGIN.left, 18, title, palette.text, { size: 14, bold: true }), `<g transform="translate(${String(MARGIN.left)} 30)">`];
  for (const bytes of ticks(view.low, view.high, 8)) {
    const y = height - ((bytes - view.low) / (view.high - view.low)) * height;
    parts.push(
      `<path d="M0 ${y.toFixed(1)}H${String(width)}" stroke="${palette.line}" stroke-width="0.7"/>`,
      svgText(-6, y + 4, bytes === 0 ? "0" : sizeText(bytes), palette.quiet, { anchor: "end", size: 11 }),
    );
  }
  const times = ticks(view.from, view.to, 9);
  for (const time of times) {
    const x = ((time - view.from) / (view.to - view.from)) * width;
    parts.push(svgText(x, height + 16, timeTick(time, (times[1] ?? 1) - (times[0] ?? 0)), palette.quiet, { anchor: "middle", size: 11 }));
  }
  parts.push(
    svgText(width, height + 32, "time, s", palette.quiet, { anchor: "end", size: 11 }),
    `<clipPath id="plot"><rect width="${String(width)}" height="${String(height)}"/></clipPath><g clip-path="url(#plot)">`,
  );
  for (const which of ["edge", "acks"] as const) {
    let path = "";
    stepped(all, which, (x, y, first) => {
      path += `${first ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
    });
    if (path !== "") parts.push(`<path d="${path}" fill="none" stroke="${which === "acks" ? palette.text : palette.quiet}"${which === "edge" ? ' stroke-dasharray="5 4"' : ""}/>`);
  }
  for (const kind of KINDS) {
    if (!painting.shown.has(kind)) continue;
    let path = "";
    rectangles(all, kind, (x, y, across, up) => {
      path += `M${x.toFixed(1)} ${y.toFixed(1)}h${across.toFixed(1)}v${up.toFixed(1)}h-${across.toFixed(1)}z`;
    });
    if (path !== "") parts.push(`<path d="${path}" fill="${inks[kind]}"><title>${NAMES[kind]}</title></path>`);
  }
  parts.push(`</g><rect width="${String(width)}" height="${String(height)}" fill="none" stroke="${palette.line}"/>`);
  const legend: [string, string][] = [
    ...KINDS.filter((kind) => painting.shown.has(kind)).map((kind): [string, string] => [NAMES[kind], inks[kind]]),
    ["acknowledged", palette.text],
    ["receive window's edge", palette.quiet],
  ];
  for (const [at, [name, ink]] of legend.entries()) {
    const [x, y] = [(at % 5) * 172, height + 52 + 18 * Math.floor(at / 5)];
    parts.push(`<rect x="${String(x)}" y="${String(y - 9)}" width="10" height="10" fill="${ink}"/>`, svgText(x + 15, y, name, palette.text, { size: 11 }));
  }
  parts.push("</g>");
  return svgDocument(width + MARGIN.left + 16, height + 116, palette, title, parts);
}
