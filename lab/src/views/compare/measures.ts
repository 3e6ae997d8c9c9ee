// The measures of a run, from the summary that the command line writes, too. How flows are combined: as in
// python/fullpipe/measures/measures.py.

import { unitFor, type ValueKind } from "../../charts/series";
import { MOST_FLOWS } from "./contents";
import { estimate, exactSum, type Estimate } from "./statistics";

interface Distribution {
  mean: number;
  p95: number;
}

interface FlowSummary {
  label: string;
  /** Its data went over the path back. */
  reverse?: boolean;
  controller: string;
  goodput_bps: number;
  segments_sent: number;
  retransmits: number;
  rtt_ms: Distribution | null;
}

interface LinkSummary {
  name: string;
  queue_delay_ms: Distribution | null;
  utilisation: number | null;
}

/** As much of a summary as is shown. */
export interface Summary {
  provenance: { spec_json: string };
  flows: FlowSummary[];
  links: LinkSummary[];
  total_goodput_bps: number;
  fairness: { jain_index: number | null; shares: { label: string; share: number | null }[] };
}

export interface Measure {
  title: string;
  explained: string;
  kind: ValueKind;
  /** Whether it says something only where several flows share the path. */
  shared?: boolean;
  take: (flows: FlowSummary[], summary: Summary) => number | null;
}

function meanOf(values: (number | null | undefined)[]): number | null {
  const present = values.filter((value): value is number => value !== null && value !== undefined);
  return present.length === 0 ? null : exactSum(present) / present.length;
}

/** The queue with the longest mean delay, which is that of the bottleneck. */
export function bottleneckOf<One extends Pick<LinkSummary, "queue_delay_ms">>(links: readonly One[]): One | null {
  let worst: One | null = null;
  for (const link of links) {
    if (link.queue_delay_ms !== null && link.queue_delay_ms.mean > (worst?.queue_delay_ms?.mean ?? -1)) worst = link;
  }
  return worst;
}

/** Where flows of both directions cross the path, the measures of a run are of its forward flows and queues. */
function measured(summary: Summary): Summary {
  const forward = summary.flows.filter(({ reverse }) => reverse !== true);
  if (forward.length === 0 || forward.length === summary.flows.length) return summary;
  const spec = JSON.parse(summary.provenance.spec_json) as { forward: { name?: string }[] };
  const links = summary.links.filter(({ name }) => spec.forward.some((element) => element.name === name));
  return { ...summary, flows: forward, links };
}

const inSeconds = (ms: number | null | undefined) => (ms === null || ms === undefined ? null : ms / 1000);

export const MEASURES: readonly Measure[] = [
  {
    title: "Goodput",
    explained: "Application bits delivered in order per second, from the flow's start to its end",
    kind: "rate",
    take: (flows, summary) => (flows.length === 1 ? (flows[0]?.goodput_bps ?? null) : summary.total_goodput_bps),
  },
  {
    title: "RTT, mean",
    explained: "The transport's smoothed round-trip time, over all samples",
    kind: "time",
    take: (flows) => inSeconds(meanOf(flows.map((flow) => flow.rtt_ms?.mean))),
  },
  {
    title: "RTT, p95",
    explained: "95 % of the samples of the round-trip time are below this",
    kind: "time",
    take: (flows) => inSeconds(meanOf(flows.map((flow) => flow.rtt_ms?.p95))),
  },
  {
    title: "Queue, p95",
    explained: "95 % of the samples of the bottleneck's queueing delay are below this",
    kind: "time",
    take: (_, { links }) => inSeconds(bottleneckOf(links)?.queue_delay_ms?.p95),
  },
  {
    title: "Retransmitted",
    explained: "Retransmissions as a part of the segments sent",
    kind: "share",
    take: (flows) => {
      const sent = flows.reduce((sum, flow) => sum + flow.segments_sent, 0);
      return sent === 0 ? null : flows.reduce((sum, flow) => sum + flow.retransmits, 0) / sent;
    },
  },
  {
    title: "Utilisation",
    explained: "Bytes that left the bottleneck, as a part of those that could have",
    kind: "share",
    take: (_, { links }) => bottleneckOf(links)?.utilisation ?? null,
  },
  {
    title: "Share",
    explained: "This flow's part of what the flows of its direction delivered",
    kind: "share",
    shared: true,
    take: (flows, { fairness }) =>
      flows.length === 1 ? (fairness.shares.find(({ label }) => label === flows[0]?.label)?.share ?? null) : null,
  },
  {
    title: "Fairness",
    explained: "Jain's index of the flows' goodputs: 1 if all are equal, 1/n if one of n has everything",
    kind: "plain",
    shared: true,
    take: (_, { fairness }) => fairness.jain_index,
  },
];

/** Each measure over the seeds of a run: of one flow, or of all of them together. */
export function estimatesOf(summaries: readonly Summary[], flow: number | "all"): (Estimate | null)[] {
  return MEASURES.map(({ take }) => {
    const values = summaries.map((summary) => {
      const of = measured(summary);
      return take(flow === "all" ? of.flows : summary.flows.slice(flow, flow + 1), of);
    });
    return estimate(values.filter((value): value is number => value !== null));
  });
}

/** A row of the table of measures. */
export interface Row {
  name: string;
  /** As which series it is drawn; null if it is not. */
  series: number | null;
  estimates: (Estimate | null)[];
}

/**
 * The rows of some runs, each with the summaries of its seeds. `beside`: the first flow of each run is compared, and others are its
 * competitors. Otherwise each flow has a row, and where there are several, all of them together, too.
 */
export function rowsOf(runs: readonly (readonly Summary[])[], names: readonly string[], beside: boolean): Row[] {
  return runs.flatMap((summaries, run): Row[] => {
    const name = names[run] ?? "";
    const flows = summaries[0]?.flows ?? [];
    if (beside || flows.length < 2) return [{ name, series: run, estimates: estimatesOf(summaries, 0) }];
    const within = (text: string) => (runs.length === 1 ? text : `${name}: ${text}`);
    return [
      ...flows.map(({ label }, flow) => ({
        name: within(label),
        series: runs.length === 1 ? (flow < MOST_FLOWS ? flow : null) : flow === 0 ? run : null,
        estimates: estimatesOf(summaries, flow),
      })),
      { name: within(flows.some(({ reverse }) => reverse) ? "forward flows" : "all flows"), series: null, estimates: estimatesOf(summaries, "all") },
    ];
  });
}

/** `48.2 Mbit/s`, or `48.2 ± 0.3 Mbit/s` over several seeds. */
export function estimateText(found: Estimate | null, kind: ValueKind): string {
  if (found === null) return "–";
  const { scale, unit } = unitFor(kind, Math.max(Math.abs(found.mean), kind === "share" ? 1 : 0));
  const half = found.high === null ? null : (found.high - found.mean) / scale;
  const mean = found.mean / scale;
  const digits = kind === "plain" ? 3 : mean === 0 || Math.abs(mean) >= 100 ? (kind === "share" ? 1 : 0) : Math.abs(mean) >= 10 ? 1 : 2;
  const fixed = (value: number) => value.toFixed(digits);
  const small = half !== null && half > 0 && Number(fixed(half)) === 0;
  const width = half === null ? "" : ` ± ${small ? half.toPrecision(1) : fixed(half)}`;
  return `${fixed(mean)}${width}${unit === "" ? "" : ` ${unit}`}`;
}
