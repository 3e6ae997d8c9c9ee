import { describe, expect, it } from "vitest";

import type { Mistake } from "../engine/protocol";
import { DEFAULTS, type Setup } from "../state/setup";
import { fieldOf, textBelow } from "./mistakes";

const SETUP: Setup = {
  ...DEFAULTS,
  controllers: ["bbr3", "reno"],
  competitors: [{ controller: "cubic", count: 3 }, { controller: "vegas", count: 1 }],
};

function at(field: string | null): Mistake {
  return { message: `${field === null ? "" : `${field}: `}"x" is wrong`, field, given: null, expected: null, fix: null };
}

describe("a mistake", () => {
  it.each([
    ["path.rate", "rate"], ["rate", "rate"], ["path.queue", "queue"], ["hosts.ecn", "ecn"], ["duration", "duration"],
    ["compare[1]", "controllers.1"], ["flows[0].controller", "controllers.0"], ["flows[3].controller", "competitors.0"],
    ["flows[4].controller", "competitors.1"], ["flows[9].controller", null], ["x", null], [null, null],
  ])("in %s of a comparison belongs to %s", (field, place) => {
    expect(fieldOf(at(field), SETUP, "comparison")).toBe(place);
  });

  it.each([["flows[1].controller", "controllers.1"], ["flows[2].controller", "competitors.0"], ["flows[5]", "competitors.1"]])(
    "in %s of a shared path belongs to %s",
    (field, place) => {
      expect(fieldOf(at(field), SETUP, "shared")).toBe(place);
    },
  );

  it("in a visitor's own text belongs to the text", () => {
    expect(fieldOf(at("path.rate"), { ...SETUP, text: "[path]" }, "shared")).toBe("text");
  });

  it("does not repeat the name of the field that it stands below", () => {
    expect(textBelow(at("path.rate"), "rate")).toBe('"x" is wrong');
    expect(textBelow(at(null), "rate")).toBe('"x" is wrong');
  });

  it("keeps the place in a text", () => {
    const wording = 'line 2, column 6: "[path" is not TOML: unclosed table';
    expect(textBelow({ ...at("line 2, column 6"), message: wording }, "text")).toBe(wording);
  });
});
