import { describe, expect, it } from "vitest";

import { aligned, indexAt, shown, spansOf, tableOf, unitFor } from "./series";

describe("lines", () => {
  it("with the same times share them", () => {
    const x = Float64Array.of(1, 2, 3);
    const { times, columns } = aligned([{ x, y: Float64Array.of(4, NaN, 6) }, { x: [1, 2, 3], y: [7, 8, 9] }]);
    expect([...times]).toEqual([1, 2, 3]);
    expect(columns.map((column) => [...column])).toEqual([[4, null, 6], [7, 8, 9]]);
  });

  it("with other times are put on the times of all", () => {
    const { times, columns } = aligned([{ x: [1, 3], y: [10, 30] }, { x: [2, 3, 4], y: [20, NaN, 40] }]);
    expect([...times]).toEqual([1, 2, 3, 4]);
    expect(columns.map((column) => [...column])).toEqual([
      [10, undefined, 30, undefined],
      [undefined, 20, null, 40],
    ]);
  });

  it("may be none", () => {
    expect(aligned([])).toEqual({ times: [], columns: [] });
  });
});

it("finds the last sample before a time", () => {
  expect([0, 1, 1.5, 3, 9].map((time) => indexAt([1, 2, 3], time))).toEqual([-1, 0, 0, 2, 2]);
});

describe("phases", () => {
  it("last until the next begins, and gaps belong to none", () => {
    expect(spansOf([0, 1, 2, 3, 4, 5], [NaN, 0, 0, 1, NaN, 1], ["startup", "drain"])).toEqual([
      { from: 1, to: 3, name: "startup" },
      { from: 3, to: 4, name: "drain" },
      { from: 5, to: 5, name: "drain" },
    ]);
  });
});

describe("values", () => {
  it.each([
    ["rate", 48.2e6, "48.2", "Mbit/s"],
    ["rate", 999e3, "999", "kbit/s"],
    ["time", 0.0402, "40.2", "ms"],
    ["bytes", 250e3, "250", "KB"],
    ["segments", 12_345, "12\u202f345", "segments"],
    ["share", 0.5, "50.0", "%"],
  ] as const)("%s %d are shown as %s %s", (kind, value, text, unit) => {
    const chosen = unitFor(kind, value);
    expect(chosen.unit).toBe(unit);
    expect(shown(value, chosen)).toBe(text);
  });

  it("that are not there are a dash", () => {
    expect([null, undefined, NaN].map((value) => shown(value, unitFor("plain", 1)))).toEqual(["–", "–", "–"]);
  });
});

it("a table has each line's last value at its times", () => {
  const lines = [{ label: "a", series: 0, x: [0, 1, 2], y: [5, NaN, 7] }];
  expect(tableOf({ lines }, -1, 2, 4)).toEqual([
    { time: -1, values: [null] },
    { time: 0, values: [5] },
    { time: 1, values: [null] },
    { time: 2, values: [7] },
  ]);
});
