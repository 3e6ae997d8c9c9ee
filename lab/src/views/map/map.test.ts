import { describe, expect, it } from "vitest";

import type { ScoreRequest } from "../../engine/protocol";
import { LIGHT } from "../../export/svg";
import { DEFAULTS } from "../../state/setup";
import { coarseFirst, compute, Kept, standIn, type Asked, type Point } from "./compute";
import { frameOf, mapSvg, strength } from "./draw";
import { axisValues, cellAt, cellText, durationOf, fairBps, planOf, type Shared } from "./question";
import { estimate, ranked, scoreOf, type Trial } from "./ranking";

const SHARED: Shared = { ...DEFAULTS, length: "full" };
const TRIAL: Trial = { goodput_bps: 1e7, rtt_p95_s: 0.05, retransmitted: 0, harm: 0.25, used: 0.4, short: 0.8 };

describe("a score", () => {
  it("is as the advisor's", () => {
    expect(scoreOf("throughput", TRIAL)).toBe(0.4);
    // Half of the 80 % that are enough.
    expect(scoreOf("delay", TRIAL)).toBeCloseTo(0.4);
    expect(scoreOf("balance", TRIAL)).toBeCloseTo(0.32);
    expect(scoreOf("neighbours", TRIAL)).toBeCloseTo(0.375);
    expect(scoreOf("balance", { ...TRIAL, used: 1.5 })).toBe(0.8);
  });

  it("of a run in which nothing was measured is nothing", () => {
    expect(scoreOf("balance", { ...TRIAL, used: 0, short: 0 })).toBe(0);
  });
});

describe("a ranking", () => {
  it("has a winner if the interval of the paired difference is above 1 %", () => {
    // Seeds scatter by far more than the candidates differ, but the same in both.
    const { winner, ahead, places } = ranked([[0.5, 0.7, 0.9], [0.45, 0.651, 0.849]]);
    expect(winner).toBe(0);
    expect(ahead).toBeCloseTo(0.05 / 0.7);
    expect(places[1]?.standing).toBe("behind");
  });

  it("has none if they differ by less than 1 %", () => {
    const { winner, places } = ranked([[0.9, 0.9, 0.9], [0.901, 0.901, 0.901]]);
    expect(winner).toBeNull();
    expect(places.map(({ candidate, standing }) => [candidate, standing])).toEqual([[1, "first"], [0, "level"]]);
  });

  it("has none if seeds disagree", () => {
    const { winner, places } = ranked([[0.9, 0.5, 0.9], [0.5, 0.8, 0.6]]);
    expect(winner).toBeNull();
    expect(places[1]?.standing).toBe("undecided");
  });

  it("keeps the order of equals, and knows no number after zero by zero", () => {
    expect(ranked([[0, 0], [0, 0]])).toMatchObject({ winner: null, ahead: 0 });
  });

  it("has an interval by Student's t", () => {
    const { mean, low, high } = estimate([1, 2, 3]);
    expect(mean).toBe(2);
    // 4.302653 standard errors of 1 / sqrt(3).
    expect(high - mean).toBeCloseTo(2.484138, 5);
    expect(mean - low).toBeCloseTo(2.484138, 5);
    expect(estimate([5])).toEqual({ mean: 5, low: 5, high: 5 });
  });
});

describe("a question", () => {
  it("runs as long as that of the advisor", () => {
    expect(durationOf(cellAt(1e6, 0.005), "full")).toBe(20);
    expect(durationOf(cellAt(1e7, 0.3), "full")).toBe(60);
    expect(durationOf(cellAt(1e9, 0.04), "full")).toBe(18);
    expect(durationOf(cellAt(1e10, 0.3), "full")).toBeCloseTo(30);
    expect(durationOf(cellAt(1e11, 0.001), "full")).toBe(1);
    expect(durationOf(cellAt(1e8, 0.0004), "full")).toBeCloseTo(2);
    expect(durationOf(cellAt(1e9, 0.04), "short")).toBeCloseTo(2.4);
  });

  it("asks for a buffer of at least a packet", () => {
    const buffer = (asked: string) => {
      const { alone } = planOf({ ...SHARED, buffer: asked }, cellAt(1e6, 0.01), "bbr3", "delay");
      return (JSON.parse(alone.text) as { path: { buffer?: string } }).path.buffer;
    };
    expect(buffer("1 bdp")).toBeUndefined();
    expect(buffer("0.9 bdp")).toBe("1500 B");
    expect(buffer("2 bdp")).toBe("2 bdp");
    expect(buffer("1 B")).toBe("1 B");
  });

  it("has the values of an axis evenly on a logarithmic scale", () => {
    expect(axisValues({ low: 1, high: 16 }, 5)).toEqual([1, 2, 4, 8, 16]);
  });

  it("puts the candidate beside the competitors, and harm on the first of them", () => {
    const shared = { ...SHARED, competitors: [{ controller: "reno", count: 2 }] };
    const { alone, duel, neighbour } = planOf(shared, cellAt(1e7, 0.02), "bbr3", "neighbours");
    expect(JSON.parse(alone.text)).toMatchObject({
      flows: [{ label: "you", controller: "bbr3" }, { controller: "reno", count: 2, label: "reno-neighbour" }],
      path: { rate: "10000000 bit/s", rtt: "20000 us" },
    });
    expect(JSON.parse(duel?.text ?? "")).toMatchObject({ flows: [{ controller: "bbr3" }, { label: "neighbour", controller: "reno" }] });
    expect(JSON.parse(neighbour?.text ?? "")).toMatchObject({ flows: [{ label: "neighbour", controller: "reno" }] });
    expect(fairBps(shared, cellAt(3e7, 0.02))).toBeCloseTo((1e7 * 1448) / 1500);
  });
});

describe("the order", () => {
  it.each([2, 3, 9, 12, 17])("of %d steps is coarse first, and has each place once", (steps) => {
    const order = coarseFirst(steps);
    expect(new Set(order.map(({ column, row }) => row * steps + column)).size).toBe(steps * steps);
    expect(order).toHaveLength(steps * steps);
    const strides = order.map(({ stride }) => stride);
    expect(strides).toEqual([...strides].sort((a, b) => b - a));
    // What is known of the first grid stands for everything.
    const first = new Set(order.filter(({ stride }) => stride === strides[0]).map(({ column, row }) => row * steps + column));
    for (const { column, row } of order) {
      expect(standIn(column, row, steps, (x, y) => (first.has(y * steps + x) ? true : undefined))).toBe(true);
    }
  });
});

/** An engine in which the second candidate is worse where the path is long. */
function fake() {
  const asked: ScoreRequest[] = [];
  const summaries = (request: ScoreRequest) => {
    asked.push(request);
    return Promise.resolve(
      request.documents.map(({ text }) => {
        const { path, flows } = JSON.parse(text) as { path: { rate: string; rtt: string }; flows: { controller: string; label: string }[] };
        const rate = Number(path.rate.split(" ")[0]);
        const long = Number(path.rtt.split(" ")[0]) > 50_000;
        return request.seeds.map(() =>
          JSON.stringify({
            total_goodput_bps: rate * 0.9,
            flows: flows.map(({ controller, label }) => ({
              label, goodput_bps: rate * (long && controller === "cubic" ? 0.5 : 0.9), loss_ratio: null, rtt_ms: { p95: 100 },
            })),
          }),
        );
      }),
    );
  };
  return { asked, summaries };
}

const ASKED: Asked = {
  shared: SHARED, candidates: ["bbr3", "cubic"], goal: "throughput", x: { low: 1e6, high: 1e8 }, y: { low: 0.01, high: 0.2 }, steps: 5, seeds: 3,
};

describe("a map", () => {
  it("finds who wins where", async () => {
    const engine = fake();
    const points: Point[] = [];
    await compute(ASKED, engine, new Kept(), (point) => points.push(point), new AbortController().signal);
    expect(points).toHaveLength(25);
    for (const { cell, ranking } of points) expect(ranking.winner).toBe(cell.rtt_us > 50_000 ? 0 : null);
  });

  it("does not compute again what is kept", async () => {
    const engine = fake();
    const kept = new Kept();
    const signal = new AbortController().signal;
    await compute(ASKED, engine, kept, () => undefined, signal);
    const before = engine.asked.length;
    const points: Point[] = [];
    await compute({ ...ASKED, goal: "delay", candidates: ["cubic", "bbr3"] }, engine, kept, (point) => points.push(point), signal);
    expect(engine.asked).toHaveLength(before);
    expect(points).toHaveLength(25);
    // Every second value of a finer map is one of the coarser one.
    await compute({ ...ASKED, steps: 9 }, engine, kept, () => undefined, signal);
    expect(engine.asked.length - before).toBeLessThanOrEqual(81 - 25);
  });

  it("says nothing more once it is ended", async () => {
    const controller = new AbortController();
    let count = 0;
    await compute(
      ASKED, fake(), new Kept(),
      () => {
        count += 1;
        controller.abort();
      },
      controller.signal,
    );
    expect(count).toBe(1);
  });

  it("forgets the oldest when there are too many", () => {
    const kept = new Kept(2);
    for (const text of ["a", "b", "c"]) kept.set(text, []);
    expect(kept.get("a", 0)).toBeUndefined();
    expect(kept.get("c", 0)).toEqual([]);
  });
});

describe("a drawing", () => {
  const point = (column: number, row: number, winner: number | null): Point => ({
    column, row, cell: cellAt(1e6, 0.01), trials: [], ranking: { places: [], winner, ahead: 0.1 },
  });
  const picture = (candidates: string[]) => ({
    candidates, steps: 3, x: { low: 1e6, high: 1e9 }, y: { low: 0.01, high: 0.3 }, title: "map",
    at: (column: number, row: number) => (column === 0 && row === 0 ? point(0, 0, 0) : column === 2 && row === 2 ? point(2, 2, null) : undefined),
  });

  it("tells winners by letter and pattern, and hatches what is not clear", () => {
    const svg = mapSvg(picture(["bbr3", "cubic"]), LIGHT, 500);
    expect(svg).toContain(">A</text>");
    expect(svg).toContain('fill="url(#map-none)"');
    // Each cell has its own answer or the nearest one.
    expect(svg.match(/<rect [^>]*fill="url\(#map-[^>]*opacity/g)).toHaveLength(9);
    expect(svg).not.toMatch(/NaN|undefined|Infinity/);
  });

  it("is as a stranger's link cannot change it", () => {
    expect(mapSvg(picture(['<img src=x onerror="alert(1)">', "b"]), LIGHT, 300)).not.toContain("<img");
  });

  it.each([240, 400, 2000])("fits into %d pixels", (width) => {
    const { left, cell } = frameOf(width, 17, 2);
    expect(left + 17 * cell).toBeLessThanOrEqual(width);
    expect(cell).toBeGreaterThan(0);
  });

  it("is stronger the farther the winner is ahead", () => {
    expect(strength(0)).toBeLessThan(strength(0.1));
    expect(strength(0.3)).toBe(1);
    expect(strength(5)).toBe(1);
  });
});

describe("the path of a cell in words", () => {
  it.each([
    [97_249_247, 67_746, "97.249247 Mbit/s", "67.746 ms"],
    [1e6, 10_000, "1 Mbit/s", "10 ms"],
    [1e9, 2_000_000, "1 Gbit/s", "2 s"],
    [1_234_567_891, 1_000_001, "1.234567891 Gbit/s", "1.000001 s"],
    [1500, 7, "1.5 kbit/s", "7 us"],
    [1, 1, "1 bit/s", "1 us"],
  ])("%d bit/s and %d us", (rate_bps, rtt_us, rate, rtt) => {
    expect(cellText({ rate_bps, rtt_us })).toEqual({ rate, rtt });
  });
});
