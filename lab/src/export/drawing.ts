// What can be exported of a view: a picture, and the numbers in it.

import type { ChartContent } from "../charts/series";
import { colour } from "../charts/theme";
import { chartCsv } from "./csv";
import { chartSvg, type Palette } from "./svg";

/** A picture and its numbers. Both are made when they are asked for. */
export interface Drawing {
  name: string;
  svg: (palette: Palette) => string;
  csv: () => string;
}

/** The colours of the page as it is now. */
export function pagePalette(): Palette {
  return {
    ground: colour("--ground"),
    text: colour("--text"),
    quiet: colour("--quiet"),
    line: colour("--line"),
    series: ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5"].map(colour),
  };
}

export function drawingOf(content: ChartContent): Drawing {
  return { name: content.title, svg: (palette) => chartSvg(content, palette), csv: () => chartCsv(content) };
}
