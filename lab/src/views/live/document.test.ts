import { describe, expect, it } from "vitest";

import { DEFAULTS } from "../../state/setup";
import { bufferBytes, changeOf, changeText, liveDocument, pathOf, shortNames } from "./document";

describe("the scenario of a live run", () => {
  it("has a loss that can change, and lasts long enough to watch", () => {
    const { text } = liveDocument(DEFAULTS);
    expect(text).toContain('loss = "0 %"');
    expect(text).toContain('duration = "200 s"');
  });

  it("lasts as long as was asked for, if that is longer; and a mistake stays what was written", () => {
    expect(liveDocument({ ...DEFAULTS, duration: "1 h" }).text).toContain('duration = "1 h"');
    expect(liveDocument({ ...DEFAULTS, duration: "soon" }).text).toContain('duration = "soon"');
  });
});

describe("a change", () => {
  const path = pathOf(DEFAULTS);

  it("is what differs", () => {
    expect(changeOf(path, path)).toBeNull();
    expect(changeOf(path, { ...path, loss: "1 %" })).toEqual({ loss: "1 %" });
    expect(changeOf({ ...path, loss: "1 %" }, path)).toEqual({ loss: "0 %" });
  });

  it("of the rate takes along a buffer in BDPs", () => {
    expect(changeOf(path, { ...path, rate: "5 Mbit/s" })).toEqual({ rate: "5 Mbit/s", buffer: "1 bdp" });
    const bytes = { ...path, buffer: "64 KB" };
    expect(changeOf(bytes, { ...bytes, rtt: "9 ms" })).toEqual({ rtt: "9 ms" });
  });

  it("is named in a few words", () => {
    expect(changeText({ rate: "5 Mbit/s", buffer: "1 bdp" })).toBe("5 Mbit/s");
    expect(changeText({ buffer: "2 bdp" })).toBe("buffer 2 bdp");
    expect(changeText({ rtt: "9 ms", loss: "1 %" })).toBe("RTT 9 ms, loss 1 %");
  });
});

it("a buffer holds so many bytes", () => {
  const path = pathOf(DEFAULTS);
  expect(bufferBytes(path, 1448)).toBeCloseTo(250_000, 6);
  expect(bufferBytes({ ...path, buffer: "10 packets" }, 1500)).toBe(15_000);
  expect(bufferBytes({ ...path, buffer: "64 KB" }, 1500)).toBe(64_000);
  expect(bufferBytes({ ...path, buffer: "?" }, 1500)).toBeNull();
});

it("names flows without parameters where they are told apart all the same", () => {
  const flow = (controller: string, label = controller) => ({ controller, label });
  expect(shortNames([flow("cubic", "cubic-1"), flow("cubic", "cubic-2")])).toEqual(["cubic-1", "cubic-2"]);
  expect(shortNames([flow("bbr1:cwnd_gain=3"), flow("reno", "")])).toEqual(["bbr1", "reno"]);
  expect(shortNames([flow("cubic:beta=0.5"), flow("cubic:beta=0.7")])).toEqual(["cubic:beta=0.5", "cubic:beta=0.7"]);
});
