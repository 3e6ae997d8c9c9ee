// The charts of a comparison: throughput, round-trip time, window and flight, queue.

import { rateOver } from "../../charts/rates";
import { noteOf, spansOf, type ChartContent, type Lane, type Line, type Reference } from "../../charts/series";
import type { Alternative, RunResult, Table } from "../../engine/protocol";

/** Over how long a goodput is averaged, in seconds: a sample is too short a time for a slow flow's packets. */
export const AVERAGED_S = 0.1;

/** Beyond this many flows of one run, those that follow are not drawn. */
export const MOST_FLOWS = 8;

export interface Shown {
  run: RunResult;
  alternative: Alternative | undefined;
  name: string;
}

const NONE = new Float64Array();

export function columnOf(table: Table | undefined, name: string): Float64Array {
  return table?.columns[name] ?? NONE;
}

/** The queue that is longest at its longest: the bottleneck's. */
export function busiestQueue(queues: readonly Table[]): Table | undefined {
  let busiest: Table | undefined;
  let most = -1;
  for (const queue of queues) {
    const longest = columnOf(queue, "queue_bytes").reduce((a, b) => Math.max(a, b), 0);
    if (longest > most) [busiest, most] = [queue, longest];
  }
  return busiest;
}

export function contentsOf(asked: { runs: Shown[]; phases: readonly string[]; shaded: number | null }): ChartContent[] {
  const { runs } = asked;
  // Of several runs, the flow that is compared; of a single one, all of its flows.
  const flows = runs.length === 1 ? flowsOf(runs[0]) : runs.map(({ run, name }, series) => ({ table: run.flows[0], label: name, series }));
  const extent: [number, number] = [0, Math.max(...runs.map(({ alternative }) => alternative?.duration_s ?? 0), 1e-3)];
  const lines = (take: (table: Table | undefined) => Float64Array): Line[] =>
    flows.map(({ table, label, series }) => ({ label, series, x: columnOf(table, "time_s"), y: take(table) }));
  const lanes: Lane[] = flows.map(({ table, label, series }) => ({
    label,
    series,
    spans: spansOf(columnOf(table, "time_s"), columnOf(table, "phase"), asked.phases),
  }));
  const shade = asked.shaded === null ? undefined : lanes[asked.shaded];
  const facts = runs[0]?.alternative?.facts;
  const segment = runs[0]?.alternative?.mss_bytes ?? 1448;
  const reference = (value: number | null | undefined, label: string): Reference[] =>
    value === null || value === undefined ? [] : [{ value, label }];
  const goodput = lines((table) => rateOver(columnOf(table, "time_s"), columnOf(table, "delivered_bytes"), AVERAGED_S));
  const link = reference(facts?.rate_bps, "link");
  return [
    {
      title: `Goodput over ${String(AVERAGED_S * 1000)} ms`,
      kind: "rate",
      lines: goodput,
      extent,
      lanes,
      shade,
      references: link,
      note: noteOf(goodput, link, (segment * 8) / AVERAGED_S, extent),
    },
    {
      title: "RTT, smoothed",
      kind: "time",
      lines: lines((table) => columnOf(table, "srtt_s")),
      extent,
      shade,
      references: reference(facts?.rtt_s, "without a queue"),
    },
    {
      title: "Window, and in flight (dotted)",
      kind: "segments",
      lines: flows.flatMap(({ table, label, series }): Line[] => {
        const x = columnOf(table, "time_s");
        return [
          { label: `${label} window`, series, x, y: columnOf(table, "cwnd") },
          { label: `${label} in flight`, series, x, y: columnOf(table, "inflight"), width: 1.1, dash: 4, unlisted: flows.length > 2 },
        ];
      }),
      extent,
      shade,
      references: reference(facts?.bdp_bytes === null || facts?.bdp_bytes === undefined ? null : facts.bdp_bytes / segment, "BDP"),
    },
    {
      title: "Queue",
      kind: "bytes",
      lines: runs.map(({ run, name }, series) => {
        const queue = busiestQueue(run.queues);
        return { label: runs.length === 1 ? "queue" : name, series, x: columnOf(queue, "time_s"), y: columnOf(queue, "queue_bytes") };
      }),
      extent,
      shade,
      references: reference(facts?.buffer_bytes, "buffer"),
    },
  ];
}

function flowsOf(shown: Shown | undefined): { table: Table; label: string; series: number }[] {
  return (shown?.run.flows ?? []).slice(0, MOST_FLOWS).map((table, series) => ({
    table,
    label: shown?.alternative?.flows[series]?.label ?? String(series + 1),
    series,
  }));
}
