// Everything that is seen, to take away: pictures, numbers, the scenario, logs, and the commands that give the same numbers.
//
//     <ExportMenu form="comparison" drawings={() => contents().map(drawingOf)} engine={engine} alternatives={names()} />

import "./export.css";

import { createSignal, createUniqueId, For, Show } from "solid-js";

import { MistakeError, type Document, type Engine } from "../engine/protocol";
import { setup } from "../state/place";
import type { Setup } from "../state/setup";
import { commandLine, FILE, pythonLines, scenarioOf, type Form } from "./commands";
import { pagePalette, type Drawing } from "./drawing";
import { copy, fileName, pngOf, save } from "./save";

export interface ExportMenuProps {
  /** Which document the view makes of the setup. */
  form: Form;
  /** What is drawn now. */
  drawings?: () => Drawing[];
  /** Writes the logs; without one there are none. */
  engine?: Pick<Engine, "qlog"> | undefined;
  /** The names of the runs, if the document compares several. */
  alternatives?: readonly string[];
  /** The setup; that of the page unless said. */
  setup?: Setup;
  /** How many seeds the view computes, from that of the setup on; one unless said. */
  seeds?: number;
  /** What the scenario, the logs and the commands do not have of what is seen. */
  note?: string;
  /** The setup is not a run that is seen: there is no scenario and no command of it. */
  noRun?: boolean;
  /** Further commands of the view, each with what it is for. */
  commands?: () => { name: string; text: string }[];
}

export function ExportMenu(props: ExportMenuProps) {
  const id = createUniqueId();
  const [which, setWhich] = createSignal(0);
  const [alternative, setAlternative] = createSignal(0);
  const [wording, setMessage] = createSignal("");
  const [wrong, setWrong] = createSignal(false);
  const now = () => props.setup ?? setup;
  const drawings = () => props.drawings?.() ?? [];
  const drawing = () => drawings()[Math.min(which(), drawings().length - 1)];
  const document_ = (): Document => ({ text: scenarioOf(now(), props.form), format: "toml" });
  const command = () => commandLine(now(), props.form, props.seeds ?? 1);
  const alternatives = () => props.alternatives ?? [];

  const report = (text: string, bad = false) => {
    setWrong(bad);
    setMessage(text);
  };
  const carryOut = (work: Promise<string>) => {
    work
      .then((text) => {
        report(text);
      })
      .catch((error: unknown) => {
        report(error instanceof MistakeError ? error.mistake.message : error instanceof Error ? error.message : String(error), true);
      });
  };
  const saved = (name: string) => `Saved ${name}.`;
  const picture = async (form: "svg" | "png" | "csv") => {
    const one = drawing();
    if (one === undefined) return "There is nothing drawn yet.";
    const name = `${fileName(one.name)}.${form}`;
    if (form === "csv") save(name, one.csv(), "text/csv");
    else {
      const svg = one.svg(pagePalette());
      if (form === "svg") save(name, svg, "image/svg+xml");
      else save(name, await pngOf(svg));
    }
    return saved(name);
  };
  const scenario = async () => {
    save(FILE, scenarioOf(now(), props.form), "application/toml");
    return saved(FILE);
  };
  const log = async (form: "current" | "qvis") => {
    if (props.engine === undefined) return "The engine is not ready yet.";
    const text = await props.engine.qlog({ document: document_(), alternative: alternative(), seed: now().seed, form });
    const name = `${fileName(alternatives()[alternative()] ?? "lab")}${form === "qvis" ? ".qvis" : ""}.qlog`;
    save(name, text, "application/json");
    return saved(name);
  };
  const copied = async (what: string, text: string) => {
    if (await copy(text)) return `Copied ${what}.`;
    throw new Error(`This browser does not let the page copy; select ${what} and copy it.`);
  };

  const Lines = (own: { name: string; text: string }) => (
    <div class="export-lines">
      <div>
        <span id={`${id}-${fileName(own.name)}`}>{own.name}</span>
        <button type="button" class="small" onClick={() => carryOut(copied(own.name, own.text))} aria-label={`Copy: ${own.name}`}>
          Copy
        </button>
      </div>
      <pre tabindex="0" role="region" aria-labelledby={`${id}-${fileName(own.name)}`}>{own.text}</pre>
    </div>
  );

  return (
    <details class="export">
      <summary>Export</summary>
      <div class="export-body">
        <Show when={drawings().length > 0}>
          <fieldset>
            <legend>Picture and numbers</legend>
            <Show when={drawings().length > 1}>
              <label>
                <span class="quiet">Chart</span>
                <select value={String(Math.min(which(), drawings().length - 1))} onChange={(event) => setWhich(Number(event.currentTarget.value))}>
                  <For each={drawings()}>{(one, at) => <option value={String(at())}>{one.name}</option>}</For>
                </select>
              </label>
            </Show>
            <button type="button" onClick={() => carryOut(picture("svg"))}>SVG</button>
            <button type="button" onClick={() => carryOut(picture("png"))}>PNG</button>
            <button type="button" onClick={() => carryOut(picture("csv"))}>CSV</button>
          </fieldset>
        </Show>
        <fieldset>
          <legend>{props.noRun === true ? "Link" : "Scenario and logs"}</legend>
          <Show when={props.noRun !== true}>
            <button type="button" onClick={() => carryOut(scenario())}>Scenario (TOML)</button>
          </Show>
          <button type="button" onClick={() => carryOut(copied("the link", location.href))}>Copy link</button>
          <Show when={props.engine !== undefined}>
            <Show when={alternatives().length > 1}>
              <label>
                <span class="quiet">Run</span>
                <select value={String(alternative())} onChange={(event) => setAlternative(Number(event.currentTarget.value))}>
                  <For each={alternatives()}>{(one, at) => <option value={String(at())}>{one}</option>}</For>
                </select>
              </label>
            </Show>
            <button type="button" onClick={() => carryOut(log("current"))}>qlog</button>
            <button type="button" onClick={() => carryOut(log("qvis"))}>qlog for qvis</button>
          </Show>
        </fieldset>
        <Show when={props.note}><p class="quiet">{props.note}</p></Show>
        <Show when={props.noRun !== true}>
          <Lines name="the command line" text={command().text} />
          <Show when={command().file}>
            <p class="quiet">It needs the file {FILE}: that is “Scenario (TOML)” above.</p>
          </Show>
          <Lines name="the lines of Python" text={pythonLines(now(), props.form, props.seeds ?? 1)} />
        </Show>
        <For each={props.commands?.() ?? []}>{(one) => <Lines name={one.name} text={one.text} />}</For>
        <p role="status" classList={{ wrong: wrong() }}>{wording()}</p>
      </div>
    </details>
  );
}
