import { describe, expect, it } from "vitest";

import { linkOf, placeOf } from "./place";
import { comparison, DEFAULTS, sentenceOf, shared, type Setup } from "./setup";

const SETUP: Setup = {
  rate: "7 Mbit/s",
  rtt: "33 ms",
  buffer: "64 KB",
  loss: "0.1 %",
  jitter: "2 ms",
  queue: "red:min=10",
  ecn: true,
  pacing: true,
  duration: "4 s",
  seed: 9,
  controllers: ["bbr1:probe_gain=1.5", "cubic", "reno"],
  competitors: [{ controller: "cubic", count: 3 }],
  text: "",
};

describe("a link", () => {
  it("carries the whole setup", () => {
    const place = placeOf(linkOf("compare", SETUP));
    expect(place.view).toBe("compare");
    expect(place.setup).toEqual(SETUP);
  });

  it("is short for what is as by default", () => {
    expect(linkOf("live", DEFAULTS)).toBe("#/live");
  });

  it("carries a scenario of the visitor's own, with every character", () => {
    const text = 'name = "a & b #1 + 100 % \u{1F680}"\n[path]\n';
    expect(placeOf(linkOf("packets", { ...DEFAULTS, text })).setup.text).toBe(text);
  });

  it.each(["", "#", "#/nowhere?rate=", "#/live?%", "#/map?with=x&with=999999 a&seed=-1&seed=1e9", "#?cc=&cc=&ecn=2"])(
    "that says nothing sensible is a place all the same: %s",
    (fragment) => {
      const { setup } = placeOf(fragment);
      expect(setup.controllers.length).toBeGreaterThan(0);
      expect(Number.isSafeInteger(setup.seed)).toBe(true);
    },
  );

  it("bounds what a stranger can ask for", () => {
    const { setup } = placeOf(`#/live?${"cc=bbr1&".repeat(50)}${"with=900 cubic&".repeat(50)}toml=${"x".repeat(1e6)}`);
    expect(setup.controllers).toHaveLength(4);
    expect(setup.competitors.every(({ count }) => count <= 20)).toBe(true);
    expect(setup.text.length).toBeLessThanOrEqual(100_000);
  });
});

describe("what of a link cannot be used", () => {
  const of = (fragment: string) => sentenceOf(placeOf(fragment).remarks);

  it.each([
    ["#/live?seed=banana", "seed is “banana”, 1 is used instead"],
    ["#/live?seed=99999999999999999999", "seed is “99999999999999999999”, 1 is used instead"],
    ["#/live?with=999+cubic", "with is “999 cubic”, 20 cubic is used instead"],
    ["#/live?with=0+cubic", "with is “0 cubic”, 1 cubic is used instead"],
    ["#/live?with=many", 'with is “many”, it is left out (write a number up to 20 and a controller, e.g. "2 cubic")'],
    ["#/live?cc=a&cc=b&cc=c&cc=d&cc=e", "cc is “5 controllers”, the first 4 are used"],
    ["#/live?cc=", "cc is “”, bbr3 and cubic are used instead"],
    ["#/live?ecn=yes", "ecn is “yes”, ECN is off (1 turns it on)"],
    ["#/live?pacing=on", "pacing is “on”, pacing is off (1 turns it on)"],
    [`#/live?queue=${"x".repeat(300)}`, `queue is “${"x".repeat(40)}…”, its first 200 characters are used`],
    ["#/nosuch", "the view is “nosuch”, there is no such view, so Live is shown"],
    ["#/live?seed=a&ecn=b", "seed is “a”, 1 is used instead; ecn is “b”, ECN is off (1 turns it on)"],
  ])("%s", (fragment, message) => {
    expect(of(fragment)).toBe(`Not all of this link can be used: ${message}.`);
  });

  it.each(["", "#/", "#/map", "#/live?seed=007&ecn=0&with=20+cubic&cc=bbr1&cc=&rate=fast", linkOf("compare", SETUP)])("nothing of %s", (fragment) => {
    expect(of(fragment)).toBe("");
  });
});

describe("a document", () => {
  it("compares the controllers beside the competitors", () => {
    expect(comparison(SETUP).text).toBe(`duration = "4 s"
compare = ["bbr1:probe_gain=1.5", "cubic", "reno"]

[path]
rate = "7 Mbit/s"
rtt = "33 ms"
buffer = "64 KB"
queue = "red:min=10"
loss = "0.1 %"
jitter = "2 ms"

[hosts]
ecn = true
pacing = true

[[flows]]

[[flows]]
controller = "cubic"

[[flows]]
controller = "cubic"

[[flows]]
controller = "cubic"
`);
  });

  it("has no buffer where the visitor chose none", () => {
    expect(shared(DEFAULTS).text).not.toContain("buffer");
    expect(shared({ ...DEFAULTS, buffer: "2 bdp" }).text).toContain('buffer = "2 bdp"');
  });

  it("puts all of them on one path", () => {
    expect(shared(SETUP).text.match(/^controller = .*/gm)).toHaveLength(6);
  });

  it("quotes what a stranger wrote", () => {
    const { text } = shared({ ...DEFAULTS, rate: '1"\n[evil]\n\u007f' });
    expect(text).toContain('rate = "1\\"\\n[evil]\\n\\u007F"');
  });
});
