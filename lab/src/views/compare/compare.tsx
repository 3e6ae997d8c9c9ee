// Compare: up to four controllers side by side, the whole run of each computed again while a slider moves.

import { createEffect, createMemo, createSignal, For, Index, on, onCleanup, Show } from "solid-js";

import { createChartGroup } from "../../charts/group";
import { SeriesChart, Swatch } from "../../charts/series-chart";
import type { ChartContent } from "../../charts/series";
import { MistakeError, type Alternative, type Mistake, type RunResult } from "../../engine/protocol";
import { drawingOf } from "../../export/drawing";
import { ExportMenu } from "../../export/export-menu";
import { keep, own, setup } from "../../state/place";
import { comparison, MOST_CONTROLLERS, type Setup } from "../../state/setup";
import { catalogue, pagePool } from "../../ui/engines";
import { Field } from "../../ui/field";
import { SetupPanel } from "../../ui/setup-panel";
import { contentsOf, MOST_FLOWS } from "./contents";
import { createLatest } from "./latest";
import { estimateText, MEASURES, rowsOf, type Summary } from "./measures";

const MOST_SEEDS = 30;

interface Question {
  setup: Setup;
  seeds: number;
}

/** What was computed: the first seed's run of each alternative, and the summaries of all seeds so far. */
interface Answer {
  alternatives: Alternative[];
  left_out: number;
  runs: RunResult[];
  summaries: Summary[][];
  /** Whether the flows beside the first are competitors. */
  own: boolean;
  took_ms: number;
}

export default function Compare() {
  const pool = pagePool();
  const group = createChartGroup();
  const [answer, setAnswer] = createSignal<Answer | null>(null);
  const [notes, setNotes] = createSignal<readonly string[]>([]);
  const [mistake, setMistake] = createSignal<Mistake | null>(null);
  const [failure, setFailure] = createSignal("");
  const [busy, setBusy] = createSignal(false);
  const [painted, setPainted] = createSignal(0);
  const seeds = createMemo(() => {
    const wording = own("seeds") ?? "";
    return /^\d{1,3}$/.test(wording) ? Math.min(Math.max(Number(wording), 1), MOST_SEEDS) : 1;
  });
  const [shaded, setShaded] = createSignal<number | null>(0);

  async function compute(question: Question, signal: AbortSignal, superseded: () => boolean): Promise<void> {
    const engines = pool.cancelledBy(signal);
    const document = comparison(question.setup);
    setBusy(true);
    try {
      const began = performance.now();
      const resolved = await engines.resolve(document);
      const alternatives = resolved.alternatives.slice(0, MOST_CONTROLLERS);
      const run = (alternative: number, seed: number) => engines.run({ document, alternative, seed });
      const runs = await Promise.all(alternatives.map((_, index) => run(index, question.setup.seed)));
      const summaries = runs.map(({ summary }) => [JSON.parse(summary) as Summary]);
      const found: Answer = {
        alternatives,
        left_out: resolved.alternatives.length - alternatives.length,
        runs,
        summaries,
        own: question.setup.text === "",
        took_ms: performance.now() - began,
      };
      setMistake(null);
      setNotes(resolved.notes);
      setFailure("");
      setAnswer(found);
      setPainted((before) => before + 1);
      for (let more = 1; more < question.seeds && !superseded(); more += 1) {
        const others = await Promise.all(alternatives.map((_, index) => run(index, question.setup.seed + more)));
        others.forEach(({ summary }, index) => summaries[index]?.push(JSON.parse(summary) as Summary));
        setAnswer({ ...found, summaries: summaries.map((of) => [...of]) });
      }
    } catch (error) {
      // What was given up for a newer question is no failure.
      if (!signal.aborted) {
        if (error instanceof MistakeError) setMistake(error.mistake);
        else setFailure(error instanceof Error ? error.message : String(error));
      }
    } finally {
      setBusy(superseded());
    }
  }

  const latest = createLatest<Question>(compute);
  onCleanup(() => {
    latest.close();
  });

  /** A copy: the store changes while the work goes on. */
  const question = createMemo(() => ({
    setup: { ...setup, controllers: [...setup.controllers], competitors: setup.competitors.map((one) => ({ ...one })) },
    seeds: seeds(),
  }));
  createEffect(on(question, (asked) => {
    latest.ask(asked);
  }));

  const names = createMemo(
    () => answer()?.alternatives.map(({ name, flows }) => name || [...new Set(flows.map(({ controller }) => controller))].join(", ")) ?? [],
    [],
    { equals: (a, b) => a.join("\n") === b.join("\n") },
  );
  const contents = createMemo((): ChartContent[] => {
    const found = answer();
    const known = catalogue();
    if (found === null || known === undefined) return [];
    return contentsOf({
      runs: found.runs.map((run, index) => ({ run, alternative: found.alternatives[index], name: names()[index] ?? "" })),
      phases: known.phases,
      shaded: shaded(),
    });
  });
  /** Whose phases can be shaded: the flows that are drawn. */
  const lanes = createMemo(() => contents()[0]?.lanes?.map(({ label }) => label) ?? [], [], {
    equals: (a, b) => a.join("\n") === b.join("\n"),
  });
  // Where a flow is gone whose phases were shaded, those of the last one are.
  createEffect(() => {
    const last = lanes().length - 1;
    if (last >= 0) setShaded((before) => (before === null ? null : Math.min(before, last)));
  });
  /** Of a single run all flows are drawn, but not beyond a number. */
  const undrawn = () => {
    const found = answer();
    const flows = found?.runs.length === 1 ? (found.runs[0]?.flows.length ?? 0) : 0;
    return flows > MOST_FLOWS ? `${String(MOST_FLOWS)} of ${String(flows)} flows are drawn.` : "";
  };
  const done = () => Math.min(...(answer()?.summaries.map((of) => of.length) ?? [0]));
  const sharedPath = () => answer()?.alternatives.some(({ flows }) => flows.length > 1) ?? false;
  const rows = createMemo(() => {
    const found = answer();
    return found === null ? [] : rowsOf(found.summaries, names(), found.own);
  });
  const status = () => {
    const found = answer();
    if (found === null) return "";
    const packets = found.runs.reduce((sum, run) => sum + run.packets, 0);
    const count = found.runs.length;
    return `${String(count)} ${count === 1 ? "run" : "runs"}, ${packets.toLocaleString("en")} packets, computed in ${found.took_ms.toFixed(0)} ms`;
  };

  return (
    <div class="bench compare" data-computed={painted()} data-busy={busy() ? "" : undefined}>
      <SetupPanel catalogue={catalogue()} mistake={mistake()} notes={notes()} form="comparison">
        <Field label="Seeds" wrong={null} hint={seeds() === 1 ? "1 seed: no interval. The charts show it." : `${String(seeds())} seeds: means with 95 % intervals (Student's t). The charts show the first.`}>
          {(tied) => (
            <input {...tied} type="number" min="1" max={MOST_SEEDS} value={seeds()}
              onChange={(event) => {
                const count = Math.min(Math.max(Math.round(event.currentTarget.valueAsNumber) || 1, 1), MOST_SEEDS);
                event.currentTarget.value = String(count);
                keep(count === 1 ? {} : { seeds: String(count) });
              }} />
          )}
        </Field>
      </SetupPanel>
      <section class="found" classList={{ stale: mistake() !== null }} aria-label="Comparison" aria-busy={busy()}>
        <Show when={failure()}><p class="wrong" role="alert">{failure()}</p></Show>
        <Show when={mistake()}>
          {(found) => <p class="wrong">The setup is wrong: {found().message}</p>}
        </Show>
        <Show when={answer()} fallback={<Show when={mistake() === null}><p class="wait quiet">Computing …</p></Show>}>
          <div class="scroll" tabindex="0" role="region" aria-label="Measures">
            <table class="measures">
              <caption>
                {done() === 1 ? "1 seed" : `Mean of ${String(done())} seeds with 95 % interval`}
                <Show when={sharedPath() && answer()?.own}>; of the flow itself, beside its competitors</Show>
                <Show when={(answer()?.left_out ?? 0) > 0}>; {answer()?.left_out} more alternatives are left out</Show>
              </caption>
              <thead>
                <tr>
                  <th scope="col">Controller</th>
                  <For each={MEASURES}>
                    {(measure) => (
                      <Show when={measure.shared !== true || sharedPath()}>
                        <th scope="col" title={measure.explained}>{measure.title}</th>
                      </Show>
                    )}
                  </For>
                </tr>
              </thead>
              <tbody>
                <Index each={rows()}>
                  {(row) => (
                    <tr>
                      <th scope="row">
                        <Show when={row().series !== null}><Swatch series={row().series ?? 0} /></Show>
                        <span>{row().name}</span>
                      </th>
                      <For each={MEASURES}>
                        {(measure, at) => (
                          <Show when={measure.shared !== true || sharedPath()}>
                            <td>{estimateText(row().estimates[at()] ?? null, measure.kind)}</td>
                          </Show>
                        )}
                      </For>
                    </tr>
                  )}
                </Index>
              </tbody>
            </table>
          </div>
          <div class="about quiet">
            <span>{status()}</span>
            <Show when={undrawn()}><span>{undrawn()}</span></Show>
            <label>
              <span>Shade the phases of</span>
              <select onChange={(event) => setShaded(event.currentTarget.value === "null" ? null : Number(event.currentTarget.value))}>
                <For each={lanes()}>{(name, index) => <option value={index()} selected={index() === shaded()}>{name}</option>}</For>
                <option value="null" selected={shaded() === null}>none</option>
              </select>
            </label>
            <span>Drag to zoom; Ctrl and the wheel; or focus a chart and press + − ← → 0.</span>
          </div>
          <Index each={contents()}>
            {(content, index) => (
              <SeriesChart content={content()} group={group} height={index === 0 ? 175 : 140} times={index === contents().length - 1} />
            )}
          </Index>
          <ExportMenu form="comparison" seeds={seeds()} drawings={() => contents().map(drawingOf)} engine={pool} alternatives={names()} />
        </Show>
      </section>
    </div>
  );
}
