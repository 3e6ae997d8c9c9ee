// The command line and the Python lines that give the numbers of a setup.

import { comparison, DEFAULTS, shared, type Setup } from "../state/setup";

/** Which document a view makes of the setup. */
export type Form = "comparison" | "shared";

/** The name of the file that the command line takes, where the setup cannot be said by options. */
export const FILE = "lab.toml";

/** A word of a command of a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A string of Python: JSON's, whose escapes Python has as well. */
function pythonString(text: string): string {
  return JSON.stringify(text);
}

/** A string of Python over several lines. */
export function pythonText(text: string): string {
  const escaped = text
    .replaceAll("\\", "\\\\")
    // A quote before the closing ones would be one of them.
    .replaceAll(/"""|"$/g, (quotes) => '\\"'.repeat(quotes.length))
    // Python takes no NUL, reads a carriage return as the end of a line, and no file has half of a surrogate pair.
    .replaceAll(/(?!\n)\p{Cc}|\p{Cf}|\p{Cs}|[\u2028\u2029]/gu, (one) => {
      const code = (one.codePointAt(0) ?? 0).toString(16);
      return one.length === 1 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
    });
  return `"""\\\n${escaped}"""`;
}

/** What `fullpipe compare` is told by options; null if it has none for a part of the setup. */
function options(setup: Setup, form: Form): [name: "rate" | "rtt" | "buffer" | "queue" | "loss" | "duration", value: string][] | null {
  const sayable =
    form === "comparison" &&
    setup.text === "" &&
    setup.jitter === "" &&
    !setup.pacing &&
    setup.competitors.length === 0 &&
    // Its seeds count from 1.
    setup.seed === 1 &&
    // A file of a user's own is found by its name, and a word that begins with a dash is an option.
    setup.controllers.every((one) => /^[a-z][^\s]*$/i.test(one) && !one.includes(".py"));
  if (!sayable) return null;
  return (["rate", "rtt", "buffer", "queue", "loss", "duration"] as const)
    .filter((name) => !((name === "queue" || name === "buffer") && setup[name] === DEFAULTS[name]) && !(name === "loss" && setup.loss === ""))
    .map((name) => [name, setup[name]]);
}

/** The scenario of a setup. */
export function scenarioOf(setup: Setup, form: Form): string {
  return (form === "comparison" ? comparison(setup) : shared(setup)).text;
}

/** A command that gives the same numbers, of `seeds` seeds from that of the setup on. `file` says whether it needs the scenario in the file `FILE`. */
export function commandLine(setup: Setup, form: Form, seeds = 1): { text: string; file: boolean } {
  const message = options(setup, form);
  if (message === null) {
    return { text: `fullpipe run ${FILE} --seed ${String(setup.seed)}${seeds === 1 ? "" : ` --seeds ${String(seeds)}`}`, file: true };
  }
  const words = message.map(([name, value]) => `--${name}=${shellWord(value)}`);
  if (setup.ecn) words.push("--ecn");
  return { text: ["fullpipe compare", ...setup.controllers.map(shellWord), ...words, `--seeds=${String(seeds)}`].join(" "), file: false };
}

/** Lines of Python that give the same numbers. */
export function pythonLines(setup: Setup, form: Form, seeds = 1): string {
  const message = options(setup, form);
  if (message === null) {
    return [
      "import tomllib",
      "",
      "import fullpipe",
      "",
      `scenario = ${pythonText(scenarioOf(setup, form))}`,
      `results = fullpipe.run(tomllib.loads(scenario), seed=${String(setup.seed)}${seeds === 1 ? "" : `, seeds=${String(seeds)}`})`,
      "print(results)",
      "",
    ].join("\n");
  }
  const given = message.map(([name, value]) => `    ${name}=${pythonString(value)},`);
  if (setup.ecn) given.push("    ecn=True,");
  return [
    "import fullpipe",
    "",
    "results = fullpipe.compare(",
    `    [${setup.controllers.map(pythonString).join(", ")}],`,
    ...given,
    `    seeds=${String(seeds)},`,
    ")",
    "print(results)",
    "",
  ].join("\n");
}
