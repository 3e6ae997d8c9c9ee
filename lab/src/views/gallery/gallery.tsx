// The gallery: claims of the papers, computed here, beside the paper's and Linux's values.

import "./gallery.css";

import { createEffect, createMemo, createSignal, For, on, onCleanup, onMount, Show } from "solid-js";

import { createChartGroup } from "../../charts/group";
import type { ChartContent } from "../../charts/series";
import { SeriesChart } from "../../charts/series-chart";
import { MistakeError, type Alternative, type RunResult } from "../../engine/protocol";
import { csv } from "../../export/csv";
import { drawingOf, type Drawing } from "../../export/drawing";
import { ExportMenu } from "../../export/export-menu";
import { go, createRemarks, keep, own } from "../../state/place";
import { DEFAULTS, type Setup } from "../../state/setup";
import { catalogue, pagePool } from "../../ui/engines";
import data from "./claims.json";
import { digits, DRAWN, linesOf, measure, undrawn, type Claim } from "./measure";
import { numbersSvg, range } from "./numbers";

const CLAIMS: Claim[] = data.claims;
const PAPERS = [...new Set(CLAIMS.map(({ paper }) => paper))].map((paper) => ({ paper, claims: CLAIMS.filter((one) => one.paper === paper) }));
const PAGE = {
  ground: "var(--ground)", text: "var(--text)", quiet: "var(--quiet)", line: "var(--line)",
  series: ["var(--series-1)", "var(--series-2)", "var(--series-3)", "var(--series-4)", "var(--series-5)"],
};

interface Computed {
  result: RunResult;
  alternative: Alternative | undefined;
}

/** A text in which words between backquotes are code. */
function Prose(props: { text: string }) {
  const parts = () => props.text.split("`").map((text, index) => ({ text, code: index % 2 === 1 }));
  return <For each={parts()}>{(part) => <Show when={part.code} fallback={part.text}><code>{part.text}</code></Show>}</For>;
}

export default function Gallery() {
  const pool = pagePool();
  const claim = createMemo(() => CLAIMS.find(({ id }) => id === own("claim")) ?? (CLAIMS[0] as Claim));
  createRemarks(() => {
    const given = own("claim");
    return given === null || given === claim().id ? [] : [{ name: "claim", given, instead: "there is no such claim, so the first one is shown" }];
  });
  const [texts, setTexts] = createSignal<string[]>([]);
  const [at, setAt] = createSignal(0);
  const [runs, setRuns] = createSignal<Computed[]>([]);
  const [busy, setBusy] = createSignal(false);
  const [wrong, setWrong] = createSignal("");
  const group = createChartGroup();

  let running: AbortController | undefined;
  onCleanup(() => running?.abort());
  const compute = (scenarios: readonly string[], seed: number) => {
    running?.abort();
    const mine = new AbortController();
    running = mine;
    setBusy(true);
    const engine = pool.cancelledBy(mine.signal);
    const one = async (text: string): Promise<Computed> => {
      const document = { text, format: "toml" as const };
      const { alternatives } = await engine.resolve(document);
      return { result: await engine.run({ document, seed }), alternative: alternatives[0] };
    };
    Promise.all(scenarios.map(one))
      .then((found) => {
        if (mine.signal.aborted) return;
        setWrong("");
        setRuns(found);
        setBusy(false);
      })
      .catch((error: unknown) => {
        if (mine.signal.aborted) return;
        setBusy(false);
        setWrong(error instanceof MistakeError ? error.mistake.message : error instanceof Error ? error.message : String(error));
      });
  };
  createEffect(
    on(claim, (now) => {
      const scenarios = now.runs.map(({ toml }) => toml);
      setTexts(scenarios);
      setAt(0);
      setRuns([]);
      setWrong("");
      group.setZoom(null);
      compute(scenarios, now.seed);
    }),
  );
  const edit = (text: string) => {
    const now = texts().map((before, index) => (index === at() ? text : before));
    setTexts(now);
    compute(now, claim().seed);
  };
  const edited = () => texts().some((text, index) => text !== claim().runs[index]?.toml);

  const contents = createMemo((): ChartContent[] => {
    const now = claim();
    const drawn = DRAWN[now.draw];
    const found = runs();
    if (drawn === undefined || found.length !== now.runs.length) return [];
    const lines = found.map(({ result, alternative }, index) =>
      linesOf(now.draw, result, (alternative?.flows ?? []).map(({ label }) => label), now.runs[index]?.name ?? "", alternative?.mss_bytes ?? 1448, index),
    );
    const extent = (of: Computed[]): [number, number] => [0, Math.max(...of.map(({ alternative }) => alternative?.duration_s ?? 1))];
    const together = found.every((_, index) => (lines[index]?.length ?? 0) === 1);
    if (together) return [{ ...drawn, lines: lines.flat(), extent: extent(found) }];
    return found.map((one, index) => ({
      kind: drawn.kind,
      title: found.length === 1 ? drawn.title : `${drawn.title}, ${now.runs[index]?.name ?? ""}`,
      lines: lines[index] ?? [],
      extent: extent([one]),
    }));
  });
  // What the charts do not show, and what they show that is easily misread.
  const notes = () => {
    const now = claim();
    const left = runs().map(({ result }, index) => undrawn(now.draw, result, now.runs.length > 1 ? (now.runs[index]?.name ?? "") : ""));
    return contents().length === 0 ? [] : [...left, now.note].filter(Boolean);
  };
  const here = createMemo(() => {
    const probing = catalogue()?.phases.indexOf("probe_rtt") ?? -1;
    return claim().numbers.map((number) => {
      const run = runs()[number.run];
      return run === undefined ? NaN : measure(number, run.result, probing);
    });
  });

  const [width, setWidth] = createSignal(420);
  let beside: HTMLDivElement | undefined;
  onMount(() => {
    if (beside === undefined) return;
    const watch = new ResizeObserver(() => setWidth(Math.max(260, Math.floor(beside?.clientWidth ?? 420))));
    watch.observe(beside);
    onCleanup(() => {
      watch.disconnect();
    });
  });

  const exported = (): Setup => ({ ...DEFAULTS, text: texts()[at()] ?? "", seed: claim().seed });
  const drawings = (): Drawing[] => {
    const now = claim();
    const numbers: Drawing = {
      name: "numbers",
      svg: (palette) => numbersSvg(now.numbers, here(), palette, 640, now.title),
      csv: () =>
        csv(
          ["number", "unit", "here", "paper from", "paper to", "paper says", "Linux"],
          now.numbers.map((one, index) => [one.name, one.unit, here()[index], one.paper?.[0], one.paper?.[1], one.paper_says, one.kernel]),
        ),
    };
    return runs().length === 0 ? [] : [...contents().map(drawingOf), numbers];
  };
  const move = (by: number) => {
    const next = CLAIMS[(CLAIMS.indexOf(claim()) + by + CLAIMS.length) % CLAIMS.length];
    if (next !== undefined) keep({ claim: next.id });
  };

  return (
    <div class="bench gallery">
      <nav class="gallery-list" aria-label="Claims">
        <label class="gallery-choice">
          <span>Claim</span>
          <select onChange={(event) => keep({ claim: event.currentTarget.value })}>
            <For each={PAPERS}>
              {({ paper, claims }) => (
                <optgroup label={paper}>
                  <For each={claims}>{(one) => <option value={one.id} selected={one.id === claim().id}>{one.title}</option>}</For>
                </optgroup>
              )}
            </For>
          </select>
        </label>
        <For each={PAPERS}>
          {({ paper, claims }) => (
            <div class="gallery-paper">
              <p id={`paper-${claims[0]?.id ?? ""}`}>{paper}</p>
              <ul aria-labelledby={`paper-${claims[0]?.id ?? ""}`}>
                <For each={claims}>
                  {(one) => (
                    <li>
                      <button type="button" aria-current={one.id === claim().id ? "true" : undefined} onClick={() => keep({ claim: one.id })}>
                        {one.title}
                      </button>
                    </li>
                  )}
                </For>
              </ul>
            </div>
          )}
        </For>
      </nav>
      <article class="gallery-claim" aria-label={claim().title}>
        <header>
          <h2>{claim().title}</h2>
          <p class="quiet">{claim().cite}: {claim().figure}. <code>{claim().claim}</code></p>
          <blockquote>{claim().says}</blockquote>
        </header>
        <dl class="gallery-texts">
          <div><dt>What to see</dt><dd><Prose text={claim().see} /></dd></div>
          <div><dt>Why</dt><dd><Prose text={claim().why} /></dd></div>
          <div><dt>What to try</dt><dd><Prose text={claim().try} /></dd></div>
        </dl>
        <Show when={wrong()}><p class="wrong" role="alert">{wrong()}</p></Show>
        <div class="gallery-shown" aria-busy={busy()}>
          <div class="gallery-charts">
            <Show when={contents().length > 0} fallback={<p class="quiet gallery-wait">{busy() ? "Computing …" : ""}</p>}>
              <For each={contents()}>{(content, index) => <SeriesChart content={content} group={group} height={contents().length > 1 ? 190 : 300} times={index() === contents().length - 1} />}</For>
              <For each={notes()}>{(note) => <p class="quiet gallery-note">{note}</p>}</For>
            </Show>
          </div>
          <div class="gallery-numbers" ref={beside}>
            {/* All texts in it are escaped where it is drawn. */}
            {/* eslint-disable-next-line solid/no-innerhtml */}
            <div aria-hidden="true" innerHTML={numbersSvg(claim().numbers, here(), PAGE, width(), claim().title)} />
            <details>
              <summary>As a table</summary>
              <div class="gallery-table">
                <table>
                  <caption class="quiet">The numbers here, in the paper and in Linux</caption>
                  <thead><tr><th scope="col">Number</th><th scope="col">Here</th><th scope="col">Paper</th><th scope="col">Linux</th></tr></thead>
                  <tbody>
                    <For each={claim().numbers}>
                      {(one, index) => (
                        <tr>
                          <th scope="row">{one.name}, {one.unit}</th>
                          <td>{digits(here()[index()])}</td>
                          <td>{one.paper === null ? one.paper_says || "–" : range(one.paper)}</td>
                          <td>{digits(one.kernel)}</td>
                        </tr>
                      )}
                    </For>
                  </tbody>
                </table>
              </div>
            </details>
            <Show when={claim().numbers.some(({ kernel }) => kernel !== null)}>
              <p class="quiet">Linux: real TCP over an emulated path{claim().kernel === null ? "; from docs/reference/claims.md" : `, ${claim().kernel ?? ""}`}.</p>
            </Show>
            <Show when={edited()}><p class="quiet">The scenario is changed: the paper and Linux had the original.</p></Show>
          </div>
        </div>
        <details class="gallery-scenario" open>
          <summary>The scenario, to change</summary>
          <div>
            <div class="gallery-row">
              <Show when={claim().runs.length > 1}>
                <label>
                  <span class="quiet">Run</span>{" "}
                  <select onChange={(event) => setAt(Number(event.currentTarget.value))}>
                    <For each={claim().runs}>{(one, index) => <option value={String(index())} selected={index() === at()}>{one.name}</option>}</For>
                  </select>
                </label>
              </Show>
              <button type="button" disabled={!edited()} onClick={() => { const all = claim().runs.map(({ toml }) => toml); setTexts(all); compute(all, claim().seed); }}>As it was</button>
              <button type="button" onClick={() => go("live", exported())}>Open in Live</button>
              <button type="button" onClick={() => go("compare", exported())}>Open in Compare</button>
              <button type="button" onClick={() => go("packets", exported())}>Open in Packets</button>
            </div>
            <textarea
              aria-label="Scenario in TOML"
              rows={Math.min(24, (texts()[at()] ?? "").split("\n").length)}
              spellcheck={false}
              value={texts()[at()] ?? ""}
              onChange={(event) => edit(event.currentTarget.value)}
            />
            <p class="quiet">It is computed again when the field is left.</p>
          </div>
        </details>
        <ExportMenu form="shared" setup={exported()} drawings={drawings} engine={pool} />
        <div class="gallery-row">
          <button type="button" onClick={() => move(-1)}>Previous claim</button>
          <button type="button" onClick={() => move(1)}>Next claim</button>
        </div>
      </article>
    </div>
  );
}
