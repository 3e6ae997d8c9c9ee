import { describe, expect, it } from "vitest";

import type { Alternative, RunResult, Table } from "../../engine/protocol";
import { busiestQueue, contentsOf, type Shown } from "./contents";

function table(columns: Record<string, number[]>): Table {
  const typed = Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, Float64Array.from(values)]));
  return { rows: columns["time_s"]?.length ?? 0, columns: typed };
}

function flow(cwnd: number): Table {
  const time_s = [0, 0.1, 0.2];
  return table({
    time_s, cwnd: [cwnd, cwnd, cwnd], inflight: [1, 2, 3], srtt_s: [NaN, 0.04, 0.05], delivered_bytes: [0, 1250, 3750], phase: [0, 0, 1],
  });
}

function shown(name: string, flows: Table[]): Shown {
  const queues = [table({ time_s: [0, 0.1], queue_bytes: [0, 1] }), table({ time_s: [0, 0.1], queue_bytes: [5, 9] })];
  const run: RunResult = { summary: "{}", flows, queues, took_ms: 1, packets: 3 };
  const alternative: Alternative = {
    name, duration_s: 0.2, mss_bytes: 1000, queues: ["a", "b"],
    flows: flows.map((_, at) => ({ label: `f${String(at)}`, controller: "reno", start_s: 0 })),
    facts: { rate_bps: 1e5, rtt_s: 0.04, bdp_bytes: 5000, buffer_bytes: null },
  };
  return { run, alternative, name };
}

const PHASES = ["startup", "drain"];

describe("the charts of a comparison", () => {
  it("have a line for the flow that is compared, in each run", () => {
    const contents = contentsOf({ runs: [shown("bbr3", [flow(5), flow(6)]), shown("cubic", [flow(7)])], phases: PHASES, shaded: 1 });
    expect(contents.map(({ title }) => title)).toEqual([
      "Goodput over 100 ms", "RTT, smoothed", "Window, and in flight (dotted)", "Queue",
    ]);
    const [goodput, rtt, window, queue] = contents;
    expect(goodput?.lines.map(({ label, y }) => [label, ...Array.from(y)])).toEqual([
      ["bbr3", NaN, 100_000, 200_000],
      ["cubic", NaN, 100_000, 200_000],
    ]);
    expect(goodput?.lanes?.[0]?.spans).toEqual([{ from: 0, to: 0.2, name: "startup" }, { from: 0.2, to: 0.2, name: "drain" }]);
    expect(rtt?.shade?.label).toBe("cubic");
    expect(window?.lines.map(({ label, y }) => [label, y[0]])).toEqual([
      ["bbr3 window", 5], ["bbr3 in flight", 1], ["cubic window", 7], ["cubic in flight", 1],
    ]);
    expect(window?.references).toEqual([{ value: 5, label: "BDP" }]);
    expect(queue?.lines.map(({ y }) => y[1])).toEqual([9, 9]);
    expect(queue?.references).toEqual([]);
  });

  it("of a single run have a line for each of its flows", () => {
    const [, rtt] = contentsOf({ runs: [shown("", [flow(5), flow(6)])], phases: PHASES, shaded: null });
    expect(rtt?.lines.map(({ label, series }) => [label, series])).toEqual([["f0", 0], ["f1", 1]]);
    expect(rtt?.shade).toBeUndefined();
  });
});

it("the bottleneck's queue is the longest", () => {
  const long = table({ queue_bytes: [0, 8, 0] });
  expect(busiestQueue([table({ queue_bytes: [3, 3, 3] }), long])).toBe(long);
  expect(busiestQueue([])).toBeUndefined();
});
