// Packets: what happened to each segment of a flow, as time against sequence.

import "./packets.css";

import { createEffect, createMemo, createSignal, For, on, onCleanup, Show } from "solid-js";

import { MistakeError, type Alternative, type Mistake } from "../../engine/protocol";
import { scenarioOf, type Form } from "../../export/commands";
import { csv } from "../../export/csv";
import type { Drawing } from "../../export/drawing";
import { ExportMenu } from "../../export/export-menu";
import { createRemarks, keep, notAmong, own, setup } from "../../state/place";
import { catalogue, pagePool } from "../../ui/engines";
import { SetupPanel } from "../../ui/setup-panel";
import { graphSvg, LOOK } from "./draw";
import { SequenceGraph } from "./graph";
import { firstAt, graphOf, KINDS, NAMES, type Graph, type Kind, type View } from "./model";

const FORMS: { form: Form; name: string }[] = [
  { form: "comparison", name: "each controller on a path of its own" },
  { form: "shared", name: "all controllers on one path" },
];

/** What takes longer than this can be cancelled. */
const SOON_MS = 1000;

function whole(text: string | null): number {
  return text !== null && /^\d{1,4}$/.test(text) ? Number(text) : 0;
}

export default function PacketsView() {
  const pool = pagePool();
  const [alternatives, setAlternatives] = createSignal<Alternative[]>([]);
  const [graph, setGraph] = createSignal<Graph | null>(null);
  const [view, setView] = createSignal<View>({ from: 0, to: 1, low: 0, high: 1 });
  const [notes, setNotes] = createSignal<readonly string[]>([]);
  const [mistake, setMistake] = createSignal<Mistake | null>(null);
  const [failure, setFailure] = createSignal("");
  const [busy, setBusy] = createSignal(true);
  // What is under way takes long; it was cancelled; how often it was asked for again.
  const [late, setLate] = createSignal(false);
  const [cancelled, setCancelled] = createSignal(false);
  const [again, setAgain] = createSignal(0);
  const [hidden, setHidden] = createSignal<ReadonlySet<Kind>>(new Set());
  const shown = createMemo(() => new Set(KINDS.filter((kind) => !hidden().has(kind))));

  const form = (): Form => (own("paths") === "shared" ? "shared" : "comparison");
  const run = () => whole(own("run"));
  const flow = () => whole(own("flow"));
  const say = (some: { paths?: Form; run?: number; flow?: number }) => {
    const now = { paths: form(), run: run(), flow: flow(), ...some };
    const kept: Record<string, string> = {};
    if (now.paths !== "comparison") kept["paths"] = now.paths;
    if (now.run !== 0) kept["run"] = String(now.run);
    if (now.flow !== 0) kept["flow"] = String(now.flow);
    keep(kept);
  };
  const text = createMemo(() => scenarioOf(setup, form()));
  const alternative = () => alternatives()[Math.min(run(), alternatives().length - 1)];

  createRemarks(() => {
    const known = alternatives();
    const [runs, flows] = [known.length, alternative()?.flows.length ?? 0];
    // Until the scenario is read, any number may be one of a run.
    const numbers = (count: number) => Array.from({ length: count === 0 ? 10_000 : count }, (_, at) => at);
    return [
      ...notAmong("paths", FORMS.map(({ form: one }) => one), form()),
      ...notAmong("run", numbers(runs), Math.max(0, runs === 0 ? run() : Math.min(run(), runs - 1))),
      ...notAmong("flow", numbers(flows), Math.max(0, flows === 0 ? flow() : Math.min(flow(), flows - 1))),
    ];
  });

  // One request at a time; of those that come meanwhile, the last. One that takes long is given up for it.
  let asked = 0;
  let running: AbortController | undefined;
  let clock: ReturnType<typeof setTimeout> | undefined;
  const begin = () => {
    clearTimeout(clock);
    if (late()) running?.abort();
    setLate(false);
    setCancelled(false);
    setBusy(true);
    clock = setTimeout(() => setLate(true), SOON_MS);
  };
  const end = () => {
    clearTimeout(clock);
    setLate(false);
    setBusy(false);
  };
  const cancel = () => {
    asked += 1;
    latest = null;
    running?.abort();
    end();
    setGraph(null);
    setCancelled(true);
  };
  onCleanup(() => {
    clearTimeout(clock);
    running?.abort();
  });
  let working = false;
  let latest: (() => Promise<void>) | null = null;
  const carryOn = () => {
    if (working || latest === null) return;
    const work = latest;
    latest = null;
    working = true;
    work().finally(() => {
      working = false;
      carryOn();
    }).catch(() => undefined);
  };
  createEffect(
    on([text, run, flow, () => setup.seed, again], ([scenario, chosenRun, chosenFlow, seed]) => {
      asked += 1;
      const mine = asked;
      const stale = () => mine !== asked;
      begin();
      latest = async () => {
        const own = new AbortController();
        running = own;
        const engine = pool.cancelledBy(own.signal);
        try {
          const document = { text: scenario, format: "toml" as const };
          const { alternatives: found, notes: wording } = await engine.resolve(document);
          if (stale()) return;
          setNotes(wording);
          setAlternatives(found);
          const at = Math.min(chosenRun, found.length - 1);
          const one = found[at];
          const of = Math.min(chosenFlow, (one?.flows.length ?? 1) - 1);
          const packets = await engine.packets({ document, alternative: at, seed, flow: of });
          if (stale()) return;
          const made = graphOf(packets, one?.duration_s ?? 1);
          setMistake(null);
          setFailure("");
          setView(made.whole);
          setGraph(made);
          end();
        } catch (error) {
          if (stale()) return;
          end();
          setGraph(null);
          if (error instanceof MistakeError) {
            setMistake(error.mistake);
            setFailure("");
          } else setFailure(error instanceof Error ? error.message : String(error));
        }
      };
      carryOn();
    }),
  );

  const toggle = (kind: Kind) => {
    const now = new Set(hidden());
    if (!now.delete(kind)) now.add(kind);
    setHidden(now);
  };
  const title = () => {
    const one = alternative();
    const of = one?.flows[Math.min(flow(), one.flows.length - 1)];
    return `Packets of ${of?.label ?? "the flow"}`;
  };
  const drawings = (): Drawing[] => {
    const now = graph();
    if (now === null) return [];
    const seen = view();
    return [
      {
        name: title(),
        svg: (palette) => graphSvg({ graph: now, view: seen, shown: shown() }, palette, title()),
        csv: () => csv(["time [s]", "what", "start [bytes]", "end [bytes]"], rowsOf(now, seen, shown())),
      },
    ];
  };

  return (
    <div class="bench packets">
      <SetupPanel catalogue={catalogue()} mistake={mistake()} notes={notes()} form={form()} />
      <section class="packets-result" aria-label="Packets">
        <div class="packets-choice">
          <label>
            <span>Paths</span>
            <select onChange={(event) => say({ paths: event.currentTarget.value as Form, run: 0, flow: 0 })} disabled={setup.text !== ""}>
              <For each={FORMS}>{(one) => <option value={one.form} selected={one.form === form()}>{one.name}</option>}</For>
            </select>
          </label>
          <Show when={alternatives().length > 1}>
            <label>
              <span>Run</span>
              <select onChange={(event) => say({ run: Number(event.currentTarget.value), flow: 0 })}>
                <For each={alternatives()}>{(one, at) => <option value={String(at())} selected={at() === run()}>{one.name}</option>}</For>
              </select>
            </label>
          </Show>
          <Show when={(alternative()?.flows.length ?? 0) > 1}>
            <label>
              <span>Flow</span>
              <select onChange={(event) => say({ flow: Number(event.currentTarget.value) })}>
                <For each={alternative()?.flows ?? []}>{(one, at) => <option value={String(at())} selected={at() === flow()}>{one.label}</option>}</For>
              </select>
            </label>
          </Show>
          <span class="quiet" role="status">{busy() ? "Computing …" : cancelled() ? "Cancelled." : ""}</span>
          <Show when={late()}><button type="button" onClick={cancel}>Cancel</button></Show>
          <Show when={cancelled()}><button type="button" onClick={() => setAgain(again() + 1)}>Compute again</button></Show>
        </div>
        <Show when={failure()}><p class="wrong" role="alert">{failure()}</p></Show>
        <Show when={mistake()}><p class="quiet">There is nothing to draw until the scenario is right.</p></Show>
        <Show when={graph()}>
          {(now) => (
            <>
              <fieldset class="packets-kinds">
                <legend class="quiet">Shown</legend>
                <For each={KINDS}>
                  {(kind) => (
                    <label classList={{ none: now().marks[kind].time_s.length === 0 }}>
                      <input type="checkbox" checked={shown().has(kind)} onChange={() => toggle(kind)} />
                      <span class="swatch" aria-hidden="true" style={{ background: `var(${LOOK[kind].colour})`, height: `${String(LOOK[kind].tall + 2)}px`, width: `${String(kind === "data" ? 14 : LOOK[kind].wide * 2 + 2)}px` }} />
                      {NAMES[kind]} <span class="quiet">{now().marks[kind].time_s.length.toLocaleString("en").replaceAll(",", "\u202f")}</span>
                    </label>
                  )}
                </For>
                <span class="packets-line"><span class="swatch solid" aria-hidden="true" />acknowledged</span>
                <span class="packets-line"><span class="swatch dashed" aria-hidden="true" />edge of the receive window</span>
              </fieldset>
              <SequenceGraph graph={now()} shown={shown()} view={view()} setView={setView} />
              <Show when={now().truncated_s !== null}>
                <p class="quiet">A run has more packets than are kept here: the graph ends at {now().truncated_s?.toFixed(2)} s.</p>
              </Show>
            </>
          )}
        </Show>
        <ExportMenu form={form()} drawings={drawings} engine={pool} alternatives={alternatives().map(({ name }) => name)} />
      </section>
    </div>
  );
}

function* rowsOf(graph: Graph, view: View, shown: ReadonlySet<Kind>): Generator<(string | number)[]> {
  for (const kind of KINDS) {
    if (!shown.has(kind)) continue;
    const { time_s, start, end } = graph.marks[kind];
    for (let at = firstAt(time_s, view.from); at < time_s.length && (time_s[at] ?? 0) <= view.to; at += 1) {
      if ((end[at] ?? 0) < view.low || (start[at] ?? 0) > view.high) continue;
      yield [time_s[at] ?? 0, NAMES[kind], start[at] ?? 0, end[at] ?? 0];
    }
  }
}
