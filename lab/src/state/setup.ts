// What a visitor has set: the path, the controllers, the seed. A link carries all of it.

import type { Document } from "../engine/protocol";

/** Flows that cross the path beside those that are looked at. */
export interface Competitor {
  controller: string;
  count: number;
}

/** Quantities are words with units, as on the command line: `50mbit`, `80 ms`, `1 bdp`. */
export interface Setup {
  rate: string;
  rtt: string;
  buffer: string;
  /** Empty for none, as `jitter`. */
  loss: string;
  jitter: string;
  queue: string;
  ecn: boolean;
  /** Whether the hosts pace every flow, as fq does. */
  pacing: boolean;
  duration: string;
  seed: number;
  /** One to four. */
  controllers: string[];
  competitors: Competitor[];
  /** A whole scenario in TOML that replaces all of the above but the seed; empty for none. */
  text: string;
}

export const MOST_CONTROLLERS = 4;
export const MOST_COMPETITORS = 20;

export const DEFAULTS: Readonly<Setup> = {
  rate: "50 Mbit/s",
  rtt: "40 ms",
  buffer: "1 bdp",
  loss: "",
  jitter: "",
  queue: "fifo",
  ecn: false,
  pacing: false,
  duration: "10 s",
  seed: 1,
  controllers: ["bbr3", "cubic"],
  competitors: [],
  text: "",
};

/** A TOML string: its escapes are JSON's but for DEL, which TOML wants escaped. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll("\u007f", "\\u007F");
}

function pathOf(setup: Setup): string[] {
  const lines = ["[path]", `rate = ${quoted(setup.rate)}`, `rtt = ${quoted(setup.rtt)}`];
  // The engine's own default is 1 bdp, too, but never below 10 packets.
  if (setup.buffer !== DEFAULTS.buffer) lines.push(`buffer = ${quoted(setup.buffer)}`);
  if (setup.queue !== DEFAULTS.queue) lines.push(`queue = ${quoted(setup.queue)}`);
  if (setup.loss !== "") lines.push(`loss = ${quoted(setup.loss)}`);
  if (setup.jitter !== "") lines.push(`jitter = ${quoted(setup.jitter)}`);
  return lines;
}

function hostsOf(setup: Setup): string[] {
  const message = (["ecn", "pacing"] as const).filter((name) => setup[name]);
  return message.length > 0 ? ["", "[hosts]", ...message.map((name) => `${name} = true`)] : [];
}

function competitorsOf(setup: Setup): string[] {
  return setup.competitors.flatMap(({ controller, count }) =>
    Array.from({ length: count }, () => ["", "[[flows]]", `controller = ${quoted(controller)}`]).flat(),
  );
}

/** Each controller has the path for itself, or shares it with the competitors: one alternative a controller. */
export function comparison(setup: Setup): Document {
  if (setup.text !== "") return { text: setup.text, format: "toml" };
  const lines = [
    `duration = ${quoted(setup.duration)}`,
    `compare = [${setup.controllers.map(quoted).join(", ")}]`,
    "",
    ...pathOf(setup),
    ...hostsOf(setup),
  ];
  if (setup.competitors.length > 0) lines.push("", "[[flows]]", ...competitorsOf(setup));
  return { text: `${lines.join("\n")}\n`, format: "toml" };
}

/** All controllers and all competitors share the path. */
export function shared(setup: Setup): Document {
  if (setup.text !== "") return { text: setup.text, format: "toml" };
  const flows = setup.controllers.flatMap((controller) => ["", "[[flows]]", `controller = ${quoted(controller)}`]);
  const lines = [`duration = ${quoted(setup.duration)}`, "", ...pathOf(setup), ...hostsOf(setup), ...flows, ...competitorsOf(setup)];
  return { text: `${lines.join("\n")}\n`, format: "toml" };
}

/** The parameters of a link, in the order of `DEFAULTS`; what is as by default is left out. */
export function parametersOf(setup: Setup): URLSearchParams {
  const message = new URLSearchParams();
  if (setup.text !== "") {
    message.set("toml", setup.text);
    if (setup.seed !== DEFAULTS.seed) message.set("seed", String(setup.seed));
    return message;
  }
  for (const key of ["rate", "rtt", "buffer", "loss", "jitter", "queue", "duration"] as const) {
    if (setup[key] !== DEFAULTS[key]) message.set(key, setup[key]);
  }
  if (setup.ecn) message.set("ecn", "1");
  if (setup.pacing) message.set("pacing", "1");
  if (setup.seed !== DEFAULTS.seed) message.set("seed", String(setup.seed));
  if (setup.controllers.join(" ") !== DEFAULTS.controllers.join(" ")) {
    for (const one of setup.controllers) message.append("cc", one);
  }
  for (const { controller, count } of setup.competitors) message.append("with", `${String(count)} ${controller}`);
  return message;
}

function whole(text: string | null, least: number, most: number, otherwise: number): number {
  if (text === null || !/^\d{1,15}$/.test(text)) return otherwise;
  return Math.min(Math.max(Number(text), least), most);
}

/** What a link says that cannot be used, and what is done instead. */
export interface Remark {
  /** The parameter, as in the link. */
  name: string;
  given: string;
  /** The rest of the sentence: `1 is used instead`. */
  instead: string;
}

const LONGEST = 200;
const LONGEST_TEXT = 100_000;
const COMPETITOR = /^(\d{1,3}) (.{1,200})$/;

/** What of a link `setupOf` cannot use as it stands. The quantities are judged by the engine. */
export function remarksOn(message: URLSearchParams): Remark[] {
  const setup = setupOf(message);
  const found: Remark[] = [];
  const seed = message.get("seed");
  if (seed !== null && (!/^\d+$/.test(seed) || Number(seed) !== setup.seed)) {
    found.push({ name: "seed", given: seed, instead: `${String(setup.seed)} is used instead` });
  }
  for (const [name, words] of [["ecn", "ECN"], ["pacing", "pacing"]] as const) {
    const given = message.get(name);
    if (given !== null && given !== "0" && given !== "1") found.push({ name, given, instead: `${words} is off (1 turns it on)` });
  }
  const controllers = message.getAll("cc");
  if (controllers.length > 0 && controllers.every((one) => one === "")) {
    found.push({ name: "cc", given: "", instead: `${DEFAULTS.controllers.join(" and ")} are used instead` });
  } else if (controllers.length > MOST_CONTROLLERS) {
    found.push({ name: "cc", given: `${String(controllers.length)} controllers`, instead: `the first ${String(MOST_CONTROLLERS)} are used` });
  }
  const competitors = message.getAll("with");
  for (const given of competitors.slice(0, MOST_CONTROLLERS)) {
    const [, count, controller] = COMPETITOR.exec(given) ?? [];
    if (count === undefined || controller === undefined) {
      found.push({ name: "with", given, instead: 'it is left out (write a number up to 20 and a controller, e.g. "2 cubic")' });
    } else {
      const used = whole(count, 1, MOST_COMPETITORS, 1);
      if (used !== Number(count)) found.push({ name: "with", given, instead: `${String(used)} ${controller} is used instead` });
    }
  }
  if (competitors.length > MOST_CONTROLLERS) {
    found.push({ name: "with", given: `${String(competitors.length)} kinds of competitors`, instead: `the first ${String(MOST_CONTROLLERS)} are used` });
  }
  for (const name of ["rate", "rtt", "buffer", "loss", "jitter", "queue", "duration"]) {
    const given = message.get(name) ?? "";
    if (given.length > LONGEST) found.push({ name, given, instead: `its first ${String(LONGEST)} characters are used` });
  }
  const text = message.get("toml") ?? "";
  if (text.length > LONGEST_TEXT) found.push({ name: "toml", given: text, instead: `its first ${String(LONGEST_TEXT)} characters are used` });
  return found;
}

/** The remarks as one sentence; empty if there are none. */
export function sentenceOf(remarks: readonly Remark[]): string {
  if (remarks.length === 0) return "";
  const short = (text: string) => (text.length > 40 ? `${text.slice(0, 40)}…` : text);
  const parts = remarks.map(({ name, given, instead }) => `${name} is “${short(given)}”, ${instead}`);
  return `Not all of this link can be used: ${parts.join("; ")}.`;
}

/** Reads a link. What it does not say, or says wrongly, is as by default; the engine judges the quantities. */
export function setupOf(message: URLSearchParams): Setup {
  const text = (key: "rate" | "rtt" | "buffer" | "loss" | "jitter" | "queue" | "duration") =>
    (message.get(key) ?? DEFAULTS[key]).slice(0, LONGEST);
  const controllers = message.getAll("cc").filter((one) => one !== "");
  const competitors = message.getAll("with").slice(0, MOST_CONTROLLERS).flatMap((one) => {
    const [, count, controller] = COMPETITOR.exec(one) ?? [];
    return count === undefined || controller === undefined
      ? []
      : [{ controller, count: whole(count, 1, MOST_COMPETITORS, 1) }];
  });
  return {
    rate: text("rate"),
    rtt: text("rtt"),
    buffer: text("buffer"),
    loss: text("loss"),
    jitter: text("jitter"),
    queue: text("queue"),
    duration: text("duration"),
    ecn: message.get("ecn") === "1",
    pacing: message.get("pacing") === "1",
    seed: whole(message.get("seed"), 0, Number.MAX_SAFE_INTEGER, DEFAULTS.seed),
    controllers: controllers.length > 0 ? controllers.slice(0, MOST_CONTROLLERS) : [...DEFAULTS.controllers],
    competitors,
    text: (message.get("toml") ?? "").slice(0, LONGEST_TEXT),
  };
}
