// Where in the form a mistake is.

import type { Mistake } from "../engine/protocol";
import type { Setup } from "../state/setup";

/** Which document the setup was made into: the number of a flow means another controller in each. */
export type Form = "comparison" | "shared";

const FIELDS: Record<string, string> = {
  "path.rate": "rate",
  "path.rtt": "rtt",
  "path.delay": "rtt",
  "path.buffer": "buffer",
  "path.loss": "loss",
  "path.jitter": "jitter",
  "path.queue": "queue",
  "hosts.ecn": "ecn",
  "hosts.pacing": "pacing",
  duration: "duration",
  seed: "seed",
};

/** The field of the form that a mistake names, as `rate`, `controllers.1` or `competitors.0`; null if it is in none of them. */
export function fieldOf(mistake: Mistake, setup: Setup, form: Form): string | null {
  if (setup.text !== "") return "text";
  const wording = mistake.field;
  if (wording === null) return null;
  const plain = FIELDS[wording] ?? Object.values(FIELDS).find((name) => name === wording);
  if (plain !== undefined) return plain;
  const [, compared] = /^compare\[(\d+)\]$/.exec(wording) ?? [];
  if (compared !== undefined) return `controllers.${compared}`;
  const [, flow] = /^flows\[(\d+)\]/.exec(wording) ?? [];
  if (flow === undefined) return null;
  const alone = form === "shared" ? setup.controllers.length : 1;
  let left = Number(flow);
  if (left < alone) return `controllers.${String(left)}`;
  left -= alone;
  for (const [index, { count }] of setup.competitors.entries()) {
    if (left < count) return `competitors.${String(index)}`;
    left -= count;
  }
  return null;
}

/** What a mistake says below the field of the form that it is in: without the name, which stands above; in a text, with its place. */
export function textBelow(mistake: Mistake, field: string): string {
  if (field === "text") return mistake.message;
  const prefix = mistake.field === null ? "" : `${mistake.field}: `;
  return mistake.message.startsWith(prefix) ? mistake.message.slice(prefix.length) : mistake.message;
}
