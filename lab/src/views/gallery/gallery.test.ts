import { describe, expect, it } from "vitest";

import type { RunResult, Table } from "../../engine/protocol";
import { LIGHT } from "../../export/svg";
import data from "./claims.json";
import { digits, DRAWN, linesOf, measure, undrawn, type Claim, type ClaimNumber } from "./measure";
import { numbersSvg } from "./numbers";

const CLAIMS: Claim[] = data.claims;

function table(columns: Record<string, number[]>): Table {
  return {
    rows: Object.values(columns)[0]?.length ?? 0,
    columns: Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, Float64Array.from(values)])),
  };
}

const RUN: RunResult = {
  summary: JSON.stringify({ flows: [{ label: "a", loss_ratio: 0.02 }, { label: "b", loss_ratio: null }] }),
  flows: [
    table({
      time_s: [1, 2, 3, 4], srtt_s: [NaN, 0.04, 0.06, 0.05], delivered_bytes: [0, 1e6, 2e6, 4e6], retransmits: [0, 0, 5, 5], phase: [0, 1, 2, 2],
      inflight: [1, 2, 3, 4],
    }),
    table({ time_s: [2, 4], srtt_s: [0.1, 0.1], delivered_bytes: [0, 1e6], retransmits: [0, 0], phase: [0, 0], inflight: [1, 1] }),
  ],
  queues: [table({ time_s: [1, 2, 3, 4], queue_delay_s: [0, 0.01, 0.03, 0.05] })],
  took_ms: 1,
  packets: 10,
};

const NUMBER: ClaimNumber = {
  name: "n", run: 0, of: "rtt_ms", flow: 0, since: 0, until: 1, unit: "ms", paper: null, paper_says: "", kernel: null, simulated: 0,
};

describe("a number", () => {
  it.each([
    ["rtt_ms", 0, 0, 50],
    ["rtt_ms", 0, 0.75, 55],
    ["goodput_mbps", 0, 0.5, 12],
    ["share_pct", 1, 0.5, 25],
    ["resent", 0, 0, 5],
    ["probe_rtt_pct", 0, 0, 50],
    ["queue_ms", 0, 0, 20],
    ["loss_pct", 0, 0, 2],
    ["loss_pct", 1, 0, 0],
  ])("%s of flow %d from %d on is %d", (of, flow, since, value) => {
    expect(measure({ ...NUMBER, of, flow, since }, RUN, 2)).toBeCloseTo(value, 9);
  });

  it("that a run does not have is none", () => {
    expect(measure({ ...NUMBER, flow: 7 }, RUN, 2)).toBeNaN();
    expect(measure({ ...NUMBER, of: "something" }, RUN, 2)).toBeNaN();
  });
});

describe("lines", () => {
  it("are one for each flow, but not more than can be told apart", () => {
    expect(linesOf("rtt_ms", RUN, ["a", "b"], "run", 1448, 0).map(({ label, series }) => [label, series])).toEqual([["a", 0], ["b", 1]]);
    const many = { ...RUN, flows: Array.from({ length: 16 }, () => RUN.flows[0] as Table) };
    expect(linesOf("goodput_mbps", many, [], "run", 1448, 0)).toHaveLength(5);
  });

  it("that are left out are counted", () => {
    const six = { ...RUN, flows: Array.from({ length: 6 }, () => RUN.flows[0] as Table) };
    expect(undrawn("goodput_mbps", six, "")).toBe("5 of 6 flows are drawn.");
    expect(undrawn("goodput_mbps", six, "marked")).toBe("5 of 6 flows are drawn (marked).");
    expect(undrawn("queue_ms", six, "")).toBe("");
    expect(undrawn("rtt_ms", RUN, "")).toBe("");
  });

  it("are of the queue where that is drawn, in the run's colour", () => {
    expect(linesOf("queue_ms", RUN, ["a", "b"], "two", 1448, 1)).toMatchObject([{ label: "two", series: 1 }]);
  });
});

describe("the gallery", () => {
  it.each(CLAIMS)("can draw $id", (claim) => {
    expect(DRAWN[claim.draw]).toBeDefined();
    for (const number of claim.numbers) {
      expect(claim.runs[number.run]).toBeDefined();
      expect(["loss_pct", "rtt_ms", "goodput_mbps", "share_pct", "resent", "probe_rtt_pct", "queue_ms"]).toContain(number.of);
    }
    const svg = numbersSvg(claim.numbers, claim.numbers.map(({ simulated }) => simulated), LIGHT, 500, claim.title);
    expect(svg).not.toMatch(/NaN|undefined|Infinity/);
    // Before the runs are there, too.
    expect(numbersSvg(claim.numbers, claim.numbers.map(() => NaN), LIGHT, 260, claim.title)).not.toMatch(/NaN|undefined|Infinity/);
  });

  const bars = (numbers: ClaimNumber[], here: number[]) =>
    Array.from(numbersSvg(numbers, here, LIGHT, 1016, "").matchAll(new RegExp(`y="(\\d+)" width="([\\d.]+)" height="9" fill="${LIGHT.series[0] ?? ""}"`, "g")), ([, y, width]) =>
      Number(y) > 20 ? Number(width) : NaN,
    ).filter((width) => !Number.isNaN(width));
  const of = (some: Partial<ClaimNumber>): ClaimNumber => ({ ...NUMBER, of: "goodput_mbps", unit: "Mbit/s", ...some });

  it("gives rows of one kind one scale", () => {
    const [ten = 0, nineteen = 0] = bars([of({ paper: [100, 100] }), of({})], [80, 8]);
    expect(ten / nineteen).toBeCloseTo(10, 1);
    expect(ten).toBeCloseTo((1000 * 80) / 108, 0);
  });

  it("gives rows of different kinds scales of their own", () => {
    const [rtt = 0, goodput = 0] = bars([of({ of: "rtt_ms", unit: "ms", paper: [400, 400] }), of({ paper: [8, 8] })], [400, 8]);
    expect(rtt).toBe(goodput);
  });

  it("draws no bar beside nothing, but one of a share", () => {
    expect(bars([of({})], [80])).toEqual([]);
    expect(bars([of({ kernel: 40 })], [80])).toHaveLength(1);
    expect(bars([of({ of: "share_pct", unit: "%" })], [25])).toEqual([250]);
  });

  it("writes three digits that count", () => {
    expect([0, 1.2345, 12.345, 123.45, 12345, NaN, null].map(digits)).toEqual(["0", "1.23", "12.3", "123", "12\u202f345", "–", "–"]);
  });
});
