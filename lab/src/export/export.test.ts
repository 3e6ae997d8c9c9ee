import { execFileSync } from "node:child_process";

import { describe, expect, it } from "vitest";

import type { ChartContent } from "../charts/series";
import { DEFAULTS, type Setup } from "../state/setup";
import { commandLine, pythonLines, pythonText, scenarioOf, shellWord, type Form } from "./commands";
import { chartCsv, csv } from "./csv";
import { fileName } from "./save";
import { chartSvg, escaped, LIGHT, piecesOf, ticks } from "./svg";

const SHORT = { ...DEFAULTS, duration: "2 s" };
const SETUPS: { name: string; form: Form; setup: Setup; seeds?: number }[] = [
  { name: "defaults", form: "comparison", setup: SHORT },
  {
    name: "every option",
    form: "comparison",
    setup: {
      ...SHORT, rate: "7 Mbit/s", rtt: "33 ms", buffer: "64 KB", loss: "0.1 %", queue: "red:min=10", ecn: true,
      controllers: ["bbr1:probe_gain=1.5", "cubic", "reno"],
    },
  },
  { name: "three seeds", form: "comparison", setup: SHORT, seeds: 3 },
  { name: "three seeds from another on", form: "comparison", setup: { ...SHORT, seed: 5 }, seeds: 3 },
  { name: "another seed", form: "comparison", setup: { ...SHORT, seed: 9 } },
  { name: "jitter", form: "comparison", setup: { ...SHORT, jitter: "2 ms" } },
  { name: "paced hosts", form: "comparison", setup: { ...SHORT, pacing: true } },
  { name: "competitors", form: "comparison", setup: { ...SHORT, competitors: [{ controller: "cubic", count: 2 }] } },
  { name: "one path for all", form: "shared", setup: { ...SHORT, seed: 3, controllers: ["bbr1", "cubic"] } },
  {
    name: "a scenario of one's own",
    form: "shared",
    setup: {
      ...SHORT, seed: 4,
      text: 'name = "back\\\\slash \\"\\"\\" and \u{1F680}"\r\nduration = "1 s"\n\n[path]\nrate = "5 Mbit/s"\nrtt = "20 ms"\n\n[[flows]]\ncontroller = "reno"\n',
    },
  },
  {
    name: "a scenario that ends in a quote",
    form: "shared",
    setup: { ...SHORT, seed: 2, text: 'duration = "1 s"\n[path]\nrate = "5 Mbit/s"\nrtt = "20 ms"\n[[flows]]\ncontroller = "reno"' },
  },
];

describe("a command", () => {
  // The same file is carried out in tests/test_lab_commands.py, which compares the numbers.
  it("is as the test of the package carries it out", async () => {
    const message = SETUPS.map(({ name, form, setup, seeds = 1 }) => ({
      name,
      seed: setup.seed,
      seeds,
      scenario: scenarioOf(setup, form),
      command: commandLine(setup, form, seeds).text,
      python: pythonLines(setup, form, seeds),
    }));
    await expect(`${JSON.stringify(message, null, 1)}\n`).toMatchFileSnapshot("../../tests/commands.json");
  });

  it("quotes for a shell what a stranger wrote", () => {
    expect(shellWord("bbr1:probe_gain=1.5")).toBe("bbr1:probe_gain=1.5");
    expect(shellWord("1 bdp; rm -rf ~")).toBe("'1 bdp; rm -rf ~'");
    expect(shellWord("it's $(x)")).toBe("'it'\\''s $(x)'");
    expect(shellWord("")).toBe("''");
  });

  it.each(["--out=/tmp/x", "mine.py:Controller", "a b"])("never names a controller that is something else to it: %s", (one) => {
    expect(commandLine({ ...DEFAULTS, controllers: [one] }, "comparison").file).toBe(true);
  });

  it("writes any text as a string of Python that has the same text", () => {
    const parts = [
      '"', '""', '"""', "'", "\\", "\\n", "\n", "\r", "\r\n", "\0", "\t", "\x7f", "\u0085", "\u202e", "\u2028", "\ud800", "\u{1F680}",
      "\u{E0041}", "{x}", "a",
    ];
    const texts = ['"""\nimport os\n\\', 'a = "b"', ...parts];
    let state = 1;
    const next = (below: number) => (state = (state * 48271) % 2147483647) % below;
    while (texts.length < 1000) texts.push(Array.from({ length: 1 + next(6) }, () => parts[next(parts.length)]).join(""));
    const python = "import ast, json, sys; json.dump([ast.literal_eval(one) for one in json.load(sys.stdin)], sys.stdout)";
    const input = JSON.stringify(texts.map(pythonText));
    expect(JSON.parse(execFileSync("python3", ["-c", python], { input, encoding: "utf8" }))).toEqual(texts);
  });
});

describe("a table", () => {
  it("quotes what needs it, and no spreadsheet takes a label for a formula", () => {
    expect(csv(["a,b", 'c"d'], [[1.5, "=1+1"], [null, NaN]])).toBe('"a,b","c""d"\r\n1.5,\'=1+1\r\n,\r\n');
  });

  it("has no rounding noise, and each digit of a whole number", () => {
    expect(csv(["a"], [[695040.0000000024, 0.1 + 0.2, 1 / 3, 45_000_000_000_001, 1e-9]])).toBe("a\r\n695040,0.3,0.333333333333,45000000000001,1e-9\r\n");
  });

  it("has a column for each line, over all times", () => {
    const content: ChartContent = {
      title: "Goodput", kind: "rate", extent: [0, 2],
      lines: [
        { label: "bbr3", x: [0, 1], y: [1e6, 2e6], series: 0 },
        { label: "cubic", x: [1, 2], y: [3e6, NaN], series: 1 },
      ],
    };
    expect(chartCsv(content)).toBe(
      "time [s],\"Goodput, bbr3 [bit/s]\",\"Goodput, cubic [bit/s]\"\r\n0,1000000,\r\n1,2000000,3000000\r\n2,,\r\n",
    );
  });
});

describe("a picture", () => {
  const content: ChartContent = {
    title: "Goodput & <more>", kind: "rate", extent: [0, 10],
    lines: [{ label: '"bbr" <3>', x: [0, 5, 10], y: [1e6, 8e6, 4e6], series: 0 }, { label: "cubic", x: [0, 5, 10], y: [1e6, NaN, 4e6], series: 1 }],
    lanes: [{ label: "bbr", series: 0, spans: [{ from: 0, to: 8, name: "startup" }] }],
    references: [{ value: 9e6, label: "the link" }],
    marks: [{ at: 2, label: "rate 5 Mbit/s" }],
  };

  it("is drawn from the data, in vectors", () => {
    const svg = chartSvg(content);
    expect(svg).not.toMatch(/<image|<script|href|NaN|undefined|Infinity/);
    expect(svg).toContain("Goodput &amp; &lt;more&gt;");
    expect(svg).toContain("&quot;bbr&quot; &lt;3&gt;");
    expect(svg).toContain("the link 9.00");
    // One path where there are no gaps, two where there is one.
    expect(svg.match(/<path /g)).toHaveLength(3);
    expect(svg).toContain(LIGHT.series[0] ?? "");
  });

  it("of nothing is a picture all the same", () => {
    expect(chartSvg({ title: "", kind: "plain", lines: [], extent: [0, 0] })).not.toMatch(/NaN|Infinity/);
  });

  it("keeps each peak of a long line", () => {
    const count = 100_000;
    const x = Float64Array.from({ length: count }, (_, at) => at / 1000);
    const y = new Float64Array(count).fill(1);
    y[31_415] = 99;
    y[59_265] = -7;
    const kept = piecesOf({ x, y }, 0, 100, 800).flat();
    expect(kept.length).toBeLessThanOrEqual(800 * 4 + 4);
    expect(Math.max(...kept.map(([, value]) => value))).toBe(99);
    expect(Math.min(...kept.map(([, value]) => value))).toBe(-7);
  });

  it("has no character that XML forbids", () => {
    expect(escaped("a\u0000\u001fb<&\">")).toBe("a\ufffd\ufffdb&lt;&amp;&quot;&gt;");
  });

  it.each([[0, 1, 5], [0, 97, 6], [3, 3.0001, 8], [1e-9, 2e-9, 4], [0, 0, 3], [-5, 5, 4]])("has round ticks from %d to %d", (from, to, count) => {
    const found = ticks(from, to, count);
    expect(found.length).toBeGreaterThan(0);
    expect(found.length).toBeLessThan(3 * count + 2);
    expect(found.every((one) => one >= from - 1e-9 && one <= to + 1e-9)).toBe(true);
  });
});

it("names files so that every system takes them", () => {
  expect(fileName("Goodput, Mbit/s")).toBe("goodput-mbit-s");
  expect(fileName("../../etc/passwd")).toBe("etc-passwd");
  expect(fileName("\u{1F680}")).toBe("lab");
});
