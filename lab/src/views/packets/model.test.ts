import { describe, expect, it } from "vitest";

import type { Packets, Table } from "../../engine/protocol";
import { LIGHT } from "../../export/svg";
import { graphSvg } from "./draw";
import { coarser, dataFor, decimate, Drawn, firstAt, graphOf, inside, KINDS, NAMES, nearest, next, stepsOf, zoomed, type Marks, type View } from "./model";

function table(columns: Record<string, number[]>): Table {
  const made = Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, Float64Array.from(values)]));
  return { rows: Object.values(columns)[0]?.length ?? 0, columns: made };
}

const MSS = 1448;

/** A run of `count` segments in which each 1000th is dropped, found lost and sent again. */
function run(count: number): Packets {
  const sent: Record<string, number[]> = { time_s: [], start_bytes: [], end_bytes: [], again: [], dropped: [] };
  const lost: Record<string, number[]> = { time_s: [], start_bytes: [], end_bytes: [] };
  const acks: Record<string, number[]> = { time_s: [], ack_bytes: [], edge_bytes: [] };
  const push = (into: Record<string, number[]>, row: Record<string, number>) => {
    for (const [name, value] of Object.entries(row)) into[name]?.push(value);
  };
  for (let at = 0; at < count; at += 1) {
    const time = at / 10_000;
    const [start, end] = [at * MSS, (at + 1) * MSS];
    push(sent, { time_s: time, start_bytes: start, end_bytes: end, again: 0, dropped: at % 1000 === 500 ? 1 : 0 });
    push(acks, { time_s: time, ack_bytes: start, edge_bytes: start + 1e6 });
    if (at % 1000 === 540) {
      const [low, high] = [(at - 40) * MSS, (at - 39) * MSS];
      push(lost, { time_s: time, start_bytes: low, end_bytes: high });
      push(sent, { time_s: time, start_bytes: low, end_bytes: high, again: 1 + (Math.floor(at / 1000) % 3), dropped: 0 });
    }
  }
  return { sent: table(sent), lost: table(lost), acks: table(acks), sacks: table({ time_s: [], start_bytes: [], end_bytes: [] }), truncated_s: null };
}

const COUNT = 200_000;
const GRAPH = graphOf(run(COUNT), COUNT / 10_000);

/** Whether something is drawn where a mark is. */
function covered(drawn: Drawn, view: View, width: number, height: number, marks: Marks, at: number): boolean {
  const time = marks.time_s[at] ?? 0;
  const x = Math.min(width - 1, Math.floor(((time - view.from) / (view.to - view.from)) * width));
  const y = (bytes: number) => height - ((bytes - view.low) / (view.high - view.low)) * height;
  const [bottom, top] = [y(marks.start[at] ?? 0), y(marks.end[at] ?? 0)];
  for (let one = 0; one < drawn.count; one += 1) {
    if (drawn.x[one] === x && (drawn.low[one] ?? 0) >= bottom - 0.01 && (drawn.high[one] ?? 0) <= top + 0.01) return true;
  }
  return false;
}

describe("decimation", () => {
  const windows: View[] = [
    GRAPH.whole,
    { from: 3, to: 9, low: 0, high: GRAPH.whole.high },
    { from: 5, to: 5.2, low: 50_000 * MSS, high: 52_000 * MSS },
    { from: 5.05, to: 5.0501, low: 50_400 * MSS, high: 50_600 * MSS },
  ];

  it.each(windows)("loses nothing that matters, at any zoom: %j", (view) => {
    const drawn = new Drawn();
    for (const kind of ["retransmission", "timeout", "probe", "drop", "lost"] as const) {
      const marks = GRAPH.marks[kind];
      expect(marks.time_s.length).toBeGreaterThan(0);
      decimate(marks, view, 700, 400, drawn);
      for (let at = 0; at < marks.time_s.length; at += 1) {
        const seen =
          (marks.time_s[at] ?? 0) >= view.from && (marks.time_s[at] ?? 0) <= view.to && (marks.end[at] ?? 0) >= view.low && (marks.start[at] ?? 0) <= view.high;
        if (seen) expect(covered(drawn, view, 700, 400, marks, at)).toBe(true);
      }
    }
  });

  it("keeps marks of one column apart that are far from each other", () => {
    const marks = { time_s: Float64Array.of(1, 1, 1.00001), start: Float64Array.of(0, 9e6, 4e6), end: Float64Array.of(1e3, 9.001e6, 4.001e6) };
    const drawn = new Drawn();
    decimate(marks, { from: 0, to: 10, low: 0, high: 1e7 }, 500, 400, drawn);
    expect(drawn.count).toBe(3);
  });

  it("draws no more than the screen can show", () => {
    const drawn = new Drawn();
    decimate(GRAPH.marks.data, GRAPH.whole, 700, 400, drawn);
    expect(drawn.count).toBeLessThan(700 * 4);
    // A line without gaps: each column has something.
    expect(new Set(drawn.x.slice(0, drawn.count)).size).toBe(700);
  });

  it("takes coarser data only where it cannot be told", () => {
    const from_afar = dataFor(GRAPH, GRAPH.whole, 20);
    expect(from_afar.time_s.length).toBeLessThan(COUNT / 8);
    expect(dataFor(GRAPH, GRAPH.whole, 1200)).not.toBe(from_afar);
    expect(dataFor(GRAPH, { ...GRAPH.whole, to: 0.1 }, 1200)).toBe(GRAPH.marks.data);
    // What it leaves out is in one column with what it keeps.
    const [full, less] = [new Drawn(), new Drawn()];
    decimate(GRAPH.marks.data, GRAPH.whole, 20, 400, full);
    decimate(from_afar, GRAPH.whole, 20, 400, less);
    for (let at = 0; at < full.count; at += 1) {
      expect(less.x[at]).toBe(full.x[at]);
      expect(Math.abs((less.high[at] ?? 0) - (full.high[at] ?? 0))).toBeLessThan(2);
    }
  });

  it("does not join segments across a gap in sequence or in time", () => {
    const marks = {
      time_s: Float64Array.of(0, 0.0001, 0.0002, 5),
      start: Float64Array.of(0, 1, 5, 6),
      end: Float64Array.of(1, 2, 6, 7),
    };
    expect([...coarser(marks, 8, 10).end]).toEqual([2, 6, 7]);
  });

  it("grows its arrays", () => {
    const drawn = new Drawn();
    for (let at = 0; at < 10_000; at += 1) drawn.add(at, 1, 2);
    expect(drawn.count).toBe(10_000);
    expect(drawn.x[9_999]).toBe(9_999);
  });
});

describe("a step line", () => {
  it("keeps the least and most of each column", () => {
    const steps = { time_s: Float64Array.of(0, 1.001, 1.002, 1.003, 2), value: Float64Array.of(10, 20, 90, 20, 30) };
    const corners: number[] = [];
    stepsOf(steps, { from: 0, to: 4, low: 0, high: 100 }, 40, 100, corners);
    const ys = corners.filter((_, at) => at % 2 === 1);
    expect(Math.min(...ys)).toBe(10);
    expect(corners.at(-1)).toBe(70);
    expect(corners.at(-2)).toBe(40);
  });

  it("of nothing is nothing", () => {
    const corners = [1, 2];
    stepsOf({ time_s: new Float64Array(0), value: new Float64Array(0) }, GRAPH.whole, 40, 100, corners);
    expect(corners).toEqual([]);
  });
});

describe("finding", () => {
  it("finds what matters before data", () => {
    const drop = { time_s: GRAPH.marks.drop.time_s[5] ?? 0, start: GRAPH.marks.drop.start[5] ?? 0 };
    const view = { from: drop.time_s - 0.01, to: drop.time_s + 0.01, low: drop.start - 1e5, high: drop.start + 1e5 };
    expect(nearest(GRAPH, view, 400, 400, 200, 199)?.kind).toBe("drop");
    expect(nearest(GRAPH, view, 400, 400, 20, 20)).toBeNull();
  });

  it("goes from event to event", () => {
    const first = next(GRAPH, ["drop"], 0, true);
    expect(first?.start).toBe(500 * MSS);
    const second = next(GRAPH, ["drop"], first ?? 0, true);
    expect(second?.start).toBe(1500 * MSS);
    expect(next(GRAPH, ["drop"], second ?? 0, false)?.start).toBe(500 * MSS);
    expect(next(GRAPH, ["drop"], 0, false)).toBeNull();
  });

  it("meets each event once, forwards and back, also those of one time", () => {
    const at = (time: number, ...starts: number[]): Marks => ({
      time_s: Float64Array.from(starts, () => time), start: Float64Array.from(starts), end: Float64Array.from(starts, (start) => start + 1),
    });
    const graph = { ...GRAPH, marks: { ...GRAPH.marks, drop: at(1, 5, 3, 4), lost: at(1, 3, 9), timeout: at(2, 1) } };
    const kinds = ["timeout", "drop", "lost"] as const;
    const seen = [];
    let now = next(graph, kinds, 0, true);
    for (; now !== null; now = next(graph, kinds, now, true)) seen.push([now.start, now.kind]);
    expect(seen).toEqual([[3, "lost"], [3, "drop"], [4, "drop"], [5, "drop"], [9, "lost"], [1, "timeout"]]);
    const back = [];
    now = next(graph, kinds, 9, false);
    for (; now !== null; now = next(graph, kinds, now, false)) back.push([now.start, now.kind]);
    expect(back).toEqual([...seen].reverse());
  });

  it("searches in halves", () => {
    const times = Float64Array.of(1, 2, 2, 3);
    expect([0, 1, 2, 2.5, 3, 4].map((time) => firstAt(times, time))).toEqual([0, 0, 1, 3, 3, 4]);
  });
});

describe("a window", () => {
  it("stays within all there is", () => {
    expect(inside({ from: -5, to: 1e9, low: -1, high: 1e12 }, GRAPH.whole)).toEqual(GRAPH.whole);
    const view = inside({ from: 19.5, to: 21.5, low: 0, high: 100 }, GRAPH.whole);
    expect(view.to).toBe(GRAPH.whole.to);
    expect(view.to - view.from).toBeCloseTo(2);
    expect(inside({ from: 1, to: 1, low: 5, high: 5 }, GRAPH.whole).to).toBeGreaterThan(1);
  });

  it("keeps the place that it is zoomed about", () => {
    const view = zoomed({ from: 0, to: 10, low: 0, high: 100 }, 0.5, 0.3, 0.5);
    expect(view.from + 0.3 * (view.to - view.from)).toBeCloseTo(3);
    expect(view.to - view.from).toBe(5);
    expect(zoomed(view, 0.5, 0, 0, { x: true, y: false })).toMatchObject({ low: view.low, high: view.high });
  });
});

it("reads a run in which nothing happened", () => {
  const empty = graphOf({ sent: table({}), acks: table({}), sacks: table({}), lost: table({}), truncated_s: null }, 5);
  expect(empty.whole).toMatchObject({ from: 0, to: 5, low: 0 });
  expect(empty.whole.high).toBeGreaterThan(0);
});

it("is drawn in vectors, with everything that matters", () => {
  const svg = graphSvg({ graph: GRAPH, view: GRAPH.whole, shown: new Set(KINDS) }, LIGHT, "Packets of <b>");
  for (const kind of ["data", "retransmission", "timeout", "probe", "drop", "lost"] as const) expect(svg).toContain(`<title>${NAMES[kind]}</title>`);
  expect(svg).not.toMatch(/NaN|undefined|Infinity|<b>/);
  const less = graphSvg({ graph: GRAPH, view: GRAPH.whole, shown: new Set(["drop"]) }, LIGHT, "");
  expect(less).not.toContain("<title>data</title>");
});
