// The scenario of a live run.

import type { Change, Document } from "../../engine/protocol";
import { shared, type Setup } from "../../state/setup";
import { amountOf } from "../../ui/quantity";

/** A live run goes on for at least this long, in seconds: the longest with a sample every 10 ms. */
export const LIVE_S = 200;

/** All controllers and competitors share the path. Loss is there, if only none, so that it can change. */
export function liveDocument(setup: Setup): Document {
  const wanted = amountOf("duration", setup.duration);
  // What is not understood here is for the engine to judge.
  const short = wanted !== null && wanted.value > 0 && wanted.value < LIVE_S;
  return shared({
    ...setup,
    loss: setup.loss === "" ? "0 %" : setup.loss,
    duration: short ? `${String(LIVE_S)} s` : setup.duration,
  });
}

/** What can change while the run goes on. */
export type Path = Pick<Setup, "rate" | "rtt" | "buffer" | "loss">;

export function pathOf(setup: Setup): Path {
  return { rate: setup.rate, rtt: setup.rtt, buffer: setup.buffer, loss: setup.loss };
}

/** The change that leads from one path to another; null if they are the same. A buffer in BDPs follows the rate and the RTT. */
export function changeOf(from: Path, to: Path): Change | null {
  const change: Change = {};
  if (to.rate !== from.rate) change.rate = to.rate;
  if (to.rtt !== from.rtt) change.rtt = to.rtt;
  if (to.loss !== from.loss) change.loss = to.loss === "" ? "0 %" : to.loss;
  const follows = amountOf("size", to.buffer)?.unit === "bdp" && (change.rate !== undefined || change.rtt !== undefined);
  if (to.buffer !== from.buffer || follows) change.buffer = to.buffer;
  return Object.keys(change).length === 0 ? null : change;
}

/** A change in a few words, for the charts. */
export function changeText(change: Change): string {
  const words: string[] = [];
  if (change.rate !== undefined) words.push(change.rate);
  if (change.rtt !== undefined) words.push(`RTT ${change.rtt}`);
  if (change.buffer !== undefined && (words.length === 0 || !change.buffer.includes("bdp"))) words.push(`buffer ${change.buffer}`);
  if (change.loss !== undefined) words.push(`loss ${change.loss}`);
  return words.join(", ");
}

/** How many bytes a buffer holds; null where the text is not understood. */
export function bufferBytes(path: Path, mss_bytes: number): number | null {
  const buffer = amountOf("size", path.buffer);
  if (buffer === null) return null;
  if (buffer.unit === "base") return buffer.value;
  if (buffer.unit === "packets") return buffer.value * mss_bytes;
  const rate = amountOf("rate", path.rate);
  const rtt = amountOf("duration", path.rtt);
  return rate && rtt && (buffer.value * rate.value * rtt.value) / 8;
}

/** Names of flows that fit in a picture: without parameters where they are told apart all the same. */
export function shortNames(flows: readonly { label: string; controller: string }[]): string[] {
  const long = flows.map(({ label, controller }) => label || controller);
  const short = long.map((name, at) => (name === flows[at]?.controller ? (name.split(":")[0] ?? name) : name));
  return short.map((name, at) => (short.indexOf(name) === short.lastIndexOf(name) ? name : (long[at] ?? name)));
}
