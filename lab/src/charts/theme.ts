// The colours of the page for what is drawn on a canvas, and when they change.

import { createSignal } from "solid-js";

const [version, setVersion] = createSignal(0);
let cache = new Map<string, string>();
let watched = false;

function watch(): void {
  watched = true;
  const changed = () => {
    cache = new Map();
    setVersion((before) => before + 1);
  };
  new MutationObserver(changed).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

/** Counts the changes of the theme: read it where something has to be drawn again. */
export function themeVersion(): number {
  if (!watched && typeof document !== "undefined") watch();
  return version();
}

/** The value of a variable of the style sheet, as `--line`. */
export function colour(variable: string): string {
  if (!watched) watch();
  let value = cache.get(variable);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(variable).trim() || "#888";
    cache.set(variable, value);
  }
  return value;
}

/** How many colours there are for series. */
export const SERIES_COLOURS = 5;

/** The variable of the colour of a series, counted from 0. */
export function seriesVariable(index: number): string {
  return `--series-${String((index % SERIES_COLOURS) + 1)}`;
}

/** Dashes: a series is known by its colour and by its dash. In CSS pixels, line then gap. */
export const DASHES: readonly (readonly number[])[] = [[], [9, 4], [3, 3], [11, 3, 3, 3], [1.5, 3.5]];

/** Where the colours begin again, each has another dash than before. */
export function dashOf(index: number): readonly number[] {
  return DASHES[(index + Math.floor(index / SERIES_COLOURS)) % DASHES.length] ?? [];
}
