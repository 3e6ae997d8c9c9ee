// Charts of the same time: one zoom, one crosshair.

import { createSignal, createUniqueId, type Accessor } from "solid-js";

export type Zoom = readonly [from: number, to: number];

export interface ChartGroup {
  /** Under which the charts' crosshairs are tied. */
  key: string;
  /** Null: all there is. */
  zoom: Accessor<Zoom | null>;
  setZoom: (zoom: Zoom | null) => void;
}

export function createChartGroup(): ChartGroup {
  const [zoom, setZoom] = createSignal<Zoom | null>(null);
  return { key: `charts-${createUniqueId()}`, zoom, setZoom: (to) => setZoom(() => to) };
}

/** The shortest stretch that can be zoomed to, in seconds. */
const SHORTEST = 1e-3;

/** `window` narrowed (below 1) or widened about `centre`, within `extent`; null if that is all of it. */
export function scaled(window: Zoom, extent: Zoom, factor: number, centre: number): Zoom | null {
  const share = (centre - window[0]) / Math.max(window[1] - window[0], Number.MIN_VALUE);
  const length = Math.max((window[1] - window[0]) * factor, SHORTEST);
  if (length >= extent[1] - extent[0]) return null;
  return within([centre - share * length, centre + (1 - share) * length], extent);
}

/** What a drag chose, widened about its middle to the shortest stretch there is, within `extent`; null if that is all of it. */
export function dragged([from, to]: Zoom, extent: Zoom): Zoom | null {
  return scaled([from, to], extent, 1, (from + to) / 2);
}

/** `window` moved by a share of its length, within `extent`. */
export function moved(window: Zoom, extent: Zoom, share: number): Zoom {
  const by = (window[1] - window[0]) * share;
  return within([window[0] + by, window[1] + by], extent);
}

function within([from, to]: Zoom, extent: Zoom): Zoom {
  const by = from < extent[0] ? extent[0] - from : to > extent[1] ? extent[1] - to : 0;
  return [from + by, to + by];
}
