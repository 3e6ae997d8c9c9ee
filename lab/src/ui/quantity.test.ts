import { describe, expect, it } from "vitest";

import { amountOf, bufferRange, positionOf, RANGES, SLIDER_STEPS, textOf, valueAt, type Kind } from "./quantity";

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
  it.each(Object.entries({ ...RANGES, bdp: bufferRange("bdp"), packets: bufferRange("packets") }))(
    "of %s stands where its value is",
    (_, range) => {
      for (let at = 0; at <= SLIDER_STEPS; at += 50) {
        const value = valueAt(at, range);
        expect(Math.abs(positionOf(value, range) - at)).toBeLessThanOrEqual(8);
      }
      expect(valueAt(SLIDER_STEPS, range)).toBeCloseTo(range.most, 9);
    },
  );

  it("of loss begins at none", () => {
    expect(valueAt(0, RANGES.loss)).toBe(0);
    expect(positionOf(0, RANGES.loss)).toBe(0);
    expect(valueAt(1, RANGES.loss)).toBe(RANGES.loss.least);
  });

  it("stays within its ends", () => {
    expect(positionOf(1e15, RANGES.rate)).toBe(SLIDER_STEPS);
    expect(positionOf(1, RANGES.rate)).toBe(0);
  });
});
