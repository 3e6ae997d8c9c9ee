import { describe, expect, it } from "vitest";

import { bottleneckOf, estimatesOf, estimateText, MEASURES, rowsOf, type Summary } from "./measures";

function flow(label: string, goodput_bps: number, rtt_ms: number | null) {
  const rtt = rtt_ms === null ? null : { mean: rtt_ms, p95: 2 * rtt_ms };
  return { label, controller: "reno", goodput_bps, segments_sent: 100, retransmits: 5, rtt_ms: rtt };
}

const SUMMARY: Summary = {
  provenance: { spec_json: JSON.stringify({ forward: [{ name: "bottleneck" }, { kind: "delay" }] }) },
  flows: [flow("a", 8e6, 40), flow("b", 2e6, null)],
  links: [
    { name: "access", queue_delay_ms: { mean: 1, p95: 2 }, utilisation: 0.1 },
    { name: "bottleneck", queue_delay_ms: { mean: 9, p95: 12 }, utilisation: 0.9 },
  ],
  total_goodput_bps: 9.9e6,
  fairness: { jain_index: 0.735, shares: [{ label: "a", share: 0.8 }, { label: "b", share: 0.2 }] },
};

function named(flow: number | "all", summaries = [SUMMARY]): Record<string, number | undefined> {
  const found = estimatesOf(summaries, flow);
  return Object.fromEntries(MEASURES.map(({ title }, at) => [title, found[at]?.mean]));
}

describe("measures", () => {
  it("of a flow beside competitors are its own", () => {
    expect(named(0)).toEqual({
      Goodput: 8e6, "RTT, mean": 0.04, "RTT, p95": 0.08, "Queue, p95": 0.012, Retransmitted: 0.05, Utilisation: 0.9, Share: 0.8,
      Fairness: 0.735,
    });
  });

  it("of a whole scenario are those of all its flows", () => {
    expect(named("all")).toMatchObject({ Goodput: 9.9e6, "RTT, mean": 0.04, Retransmitted: 0.05, Share: undefined });
  });

  it("of a scenario with flows of both directions are those of the forward ones", () => {
    const other = { ...flow("b", 2e6, 60), reverse: true };
    const wait = { name: "reverse", queue_delay_ms: { mean: 90, p95: 99 }, utilisation: 0.5 };
    const both = { ...SUMMARY, flows: [flow("a", 8e6, 40), other], links: [...SUMMARY.links, wait] };
    expect(named("all", [both])).toMatchObject({ Goodput: 8e6, "RTT, mean": 0.04, "Queue, p95": 0.012, Utilisation: 0.9 });
    expect(named(1, [both])).toMatchObject({ Goodput: 2e6, "RTT, mean": 0.06, Share: 0.2 });
    // The control: of one direction, the longest queue counts, and each flow.
    const one = { ...both, flows: [flow("a", 8e6, 40), { ...other, reverse: false }] };
    expect(named("all", [one])).toMatchObject({ "RTT, mean": 0.05, "Queue, p95": 0.099 });
    expect(rowsOf([[both]], ["reno"], false).map(({ name }) => name)).toEqual(["a", "b", "forward flows"]);
  });

  it("have a row a flow, each with its share, and one for all of them", () => {
    const rows = rowsOf([[SUMMARY]], ["reno"], false);
    const share = MEASURES.findIndex(({ title }) => title === "Share");
    expect(rows.map(({ name, series, estimates }) => [name, series, estimates[0]?.mean, estimates[share]?.mean])).toEqual([
      ["a", 0, 8e6, 0.8], ["b", 1, 2e6, 0.2], ["all flows", null, 9.9e6, undefined],
    ]);
    expect(rowsOf([[SUMMARY], [SUMMARY]], ["x", "y"], false).map(({ name, series }) => [name, series])).toEqual([
      ["x: a", 0], ["x: b", null], ["x: all flows", null], ["y: a", 1], ["y: b", null], ["y: all flows", null],
    ]);
    expect(rowsOf([[SUMMARY], [SUMMARY]], ["x", "y"], true).map(({ name }) => name)).toEqual(["x", "y"]);
  });

  it("take the queue of the bottleneck", () => {
    expect(bottleneckOf(SUMMARY.links)?.name).toBe("bottleneck");
    expect(bottleneckOf([])).toBeNull();
  });

  it("are read with their interval over seeds", () => {
    const other = { ...SUMMARY, flows: [flow("a", 8.4e6, 40), flow("b", 2e6, null)] };
    const [goodput] = estimatesOf([SUMMARY, other], 0);
    expect(estimateText(goodput ?? null, "rate")).toBe("8.20 ± 2.54 Mbit/s");
    expect(estimateText(estimatesOf([SUMMARY], 0)[0] ?? null, "rate")).toBe("8.00 Mbit/s");
    expect(estimateText(null, "rate")).toBe("–");
    expect(estimateText({ mean: 1, low: null, high: null, count: 1 }, "share")).toBe("100.0 %");
  });
});
