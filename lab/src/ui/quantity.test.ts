import { describe, expect, it } from "vitest";

import {
  amountOf, bufferRange, positionOf, RANGES, SLIDER_STEPS, stopNear, stopsOf, textOf, valueAt, type Amount, type Kind, type Range,
} from "./quantity";

describe("a quantity", () => {
  it.each<[Kind, string, number, string]>([
    ["rate", "100 Mbit/s", 1e8, "base"],
    ["rate", "50mbit", 5e7, "base"],
    ["rate", "10 MB/s", 8e7, "base"],
    ["rate", "10 Mb/s", 1e7, "base"],
    ["rate", "1.5 Gbit/s", 1.5e9, "base"],
    ["duration", "40 ms", 0.04, "base"],
    ["duration", "200us", 2e-4, "base"],
    ["duration", "2 min", 120, "base"],
    ["duration", "0", 0, "base"],
    ["size", "1 bdp", 1, "bdp"],
    ["size", "50 packets", 50, "packets"],
    ["size", "100 KB", 1e5, "base"],
    ["size", "1 MiB", 1_048_576, "base"],
    ["size", "1500", 1500, "base"],
    ["probability", "0.1 %", 0.001, "base"],
    ["probability", "0.01", 0.01, "base"],
    ["probability", "", 0, "base"],
  ])("%s %s is read as the engine reads it", (kind, text, value, unit) => {
    expect(amountOf(kind, text)?.value).toBeCloseTo(value, 9);
    expect(amountOf(kind, text)?.unit).toBe(unit);
  });

  it.each<[Kind, string]>([
    ["rate", ""], ["rate", "10"], ["rate", "fast"], ["rate", "-1 Mbit/s"], ["duration", "40"], ["duration", "1 parsec"],
    ["size", ""], ["size", "1 hogshead"], ["probability", "1 in 10"],
  ])("%s %j leaves the slider where it is", (kind, text) => {
    expect(amountOf(kind, text)).toBeNull();
  });

  it.each<[Kind, string]>([
    ["rate", "48.2 Mbit/s"], ["rate", "1 Gbit/s"], ["duration", "40 ms"], ["duration", "1.5 s"], ["size", "125 KB"],
    ["size", "0.25 bdp"], ["size", "50 packets"], ["probability", "0.15 %"],
  ])("%s %s is written as it was read", (kind, text) => {
    const amount = amountOf(kind, text);
    expect(amount && textOf(kind, amount)).toBe(text);
  });

  it("never asks the engine for a part of a byte", () => {
    expect(textOf("size", { value: 12.7, unit: "base" })).toBe("13 B");
  });
});

describe("a slider", () => {
  it.each(Object.entries({ ...RANGES, bdp: bufferRange("bdp"), packets: bufferRange("packets"), bytes: bufferRange("base") }))(
    "of %s stands where its value is, from end to end",
    (_, range) => {
      const stops = stopsOf(range);
      expect(stops.map((value) => stopNear(value, range))).toEqual(stops.map((_, at) => at));
      expect(stops).toEqual([...new Set(stops)].sort((a, b) => a - b));
      expect([stops[range.nothing === true ? 1 : 0], stops.at(-1)]).toEqual([range.least, range.most]);
    },
  );

  it.each<[Kind, Amount["unit"], Range]>([
    ["rate", "base", RANGES.rate], ["duration", "base", RANGES.rtt], ["probability", "base", RANGES.loss],
    ["size", "base", bufferRange("base")], ["size", "bdp", bufferRange("bdp")], ["size", "packets", bufferRange("packets")],
  ])("of %s in %s stays where the text that it writes puts it", (kind, unit, range) => {
    for (const [at, value] of stopsOf(range).entries()) {
      const read = amountOf(kind, textOf(kind, { value, unit }));
      expect(read?.unit).toBe(unit);
      expect(stopNear(read?.value ?? NaN, range)).toBe(at);
    }
  });

  it("of loss begins at none", () => {
    expect(stopsOf(RANGES.loss).slice(0, 2)).toEqual([0, RANGES.loss.least]);
    expect(stopNear(0, RANGES.loss)).toBe(0);
  });

  it("of packets has no parts", () => {
    expect(stopsOf(bufferRange("packets")).every(Number.isInteger)).toBe(true);
  });

  it("stays within its ends", () => {
    expect(stopNear(1e15, RANGES.rate)).toBe(stopsOf(RANGES.rate).length - 1);
    expect(stopNear(1, RANGES.rate)).toBe(0);
  });

  it("without stops stands where its value is, too", () => {
    for (const range of [...Object.values(RANGES), bufferRange("bdp"), bufferRange("packets")]) {
      for (let at = 100; at <= SLIDER_STEPS; at += 50) {
        expect(Math.abs(positionOf(valueAt(at, range), range) - at)).toBeLessThanOrEqual(range.whole === true ? 40 : 8);
      }
      expect(valueAt(SLIDER_STEPS, range)).toBeCloseTo(range.most, 9);
    }
    expect(valueAt(0, RANGES.loss)).toBe(0);
  });
});
