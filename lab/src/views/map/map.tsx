// The decision map: who is best at which rate and round-trip time, computed in all workers.

import "./map.css";

import { createEffect, createMemo, createSignal, createUniqueId, For, Index, on, onCleanup, onMount, Show, untrack } from "solid-js";

import { MistakeError, type Mistake } from "../../engine/protocol";
import { csv } from "../../export/csv";
import { shellWord } from "../../export/commands";
import type { Drawing } from "../../export/drawing";
import { ExportMenu } from "../../export/export-menu";
import { change, go, createRemarks, keep, notAmong, own, setup } from "../../state/place";
import { DEFAULTS } from "../../state/setup";
import { catalogue, pagePool } from "../../ui/engines";
import { Field } from "../../ui/field";
import { amountOf, bufferRange, positionOf, rateText, SLIDER_STEPS, textOf, timeText, valueAt } from "../../ui/quantity";
import { SetupPanel } from "../../ui/setup-panel";
import { compute, Kept, type Asked, type Point } from "./compute";
import { frameOf, LETTERS, mapSvg, type Picture } from "./draw";
import { cellAt, cellText, GOALS, LENGTHS, planOf, type GoalName, type Length, type Range } from "./question";
import { ALIKE, MEANS, type Trial } from "./ranking";

const STEPS = [9, 17, 33] as const;
const SEEDS = [1, 3, 5] as const;
const AXES = { x: { low: "2 Mbit/s", high: "1 Gbit/s" }, y: { low: "10 ms", high: "300 ms" } } as const;

// What was computed stays while the page does, also when another view is looked at.
const kept = new Kept();
const PAGE = {
  ground: "var(--ground)", text: "var(--text)", quiet: "var(--quiet)", line: "var(--line)",
  series: ["var(--series-1)", "var(--series-2)", "var(--series-3)", "var(--series-4)"],
};

function chosen<T>(all: readonly T[], wording: string | null, otherwise: T): T {
  return all.find((one) => String(one) === wording) ?? otherwise;
}

export default function DecisionMap() {
  const pool = pagePool();
  const id = createUniqueId();

  const goal = () => chosen<GoalName>(GOALS, own("for"), "balance");
  const steps = () => chosen(STEPS, own("steps"), 17);
  const seeds = () => chosen(SEEDS, own("seeds"), 3);
  const length = () => chosen<Length>(LENGTHS, own("length"), "short");
  createRemarks(() => [
    ...notAmong("for", GOALS, goal()), ...notAmong("steps", STEPS, steps()), ...notAmong("seeds", SEEDS, seeds()), ...notAmong("length", LENGTHS, length()),
  ]);
  const end = (axis: "x" | "y", which: "low" | "high") => (own(`${axis}-${which}`) ?? AXES[axis][which]).slice(0, 40);
  const say = (some: Record<string, string>) => {
    const now: Record<string, string> = {};
    for (const key of ["for", "steps", "seeds", "length", "x-low", "x-high", "y-low", "y-high"]) {
      const value = some[key] ?? own(key);
      if (value !== null && value !== undefined) now[key] = value;
    }
    keep(now);
  };

  const range = (axis: "x" | "y"): Range | string => {
    const kind = axis === "x" ? "rate" : "duration";
    const [low, high] = [amountOf(kind, end(axis, "low")), amountOf(kind, end(axis, "high"))];
    if (low === null || high === null) return axis === "x" ? "write rates, e.g. 1 Mbit/s" : "write times, e.g. 5 ms";
    if (!(low.value > 0 && low.value < high.value)) return "the second must be above the first, and both above zero";
    return { low: low.value, high: high.value };
  };
  const rangeWrong = (axis: "x" | "y") => {
    const found = range(axis);
    return typeof found === "string" ? found : null;
  };

  const candidates = () => [...new Set(setup.controllers)];
  const asked = createMemo<Asked | null>(() => {
    const [x, y] = [range("x"), range("y")];
    if (typeof x === "string" || typeof y === "string" || setup.text !== "" || candidates().length < 2) return null;
    const { buffer, loss, jitter, queue, ecn } = setup;
    const competitors = setup.competitors.map((one) => ({ ...one }));
    return { shared: { buffer, loss, jitter, queue, ecn, competitors, length: length() }, candidates: candidates(), goal: goal(), x, y, steps: steps(), seeds: seeds() };
  }, null, { equals: (a, b) => JSON.stringify(a) === JSON.stringify(b) });

  // The points of the map as asked now, by place.
  let points = new Map<number, Point>();
  const [version, setVersion] = createSignal(0);
  const [mistake, setMistake] = createSignal<Mistake | null>(null);
  const [failure, setFailure] = createSignal("");
  const [busy, setBusy] = createSignal(false);
  const at = (column: number, row: number) => points.get(row * steps() + column);
  let frameAsked = false;
  const drawSoon = () => {
    if (frameAsked) return;
    frameAsked = true;
    requestAnimationFrame(() => {
      frameAsked = false;
      setVersion((before) => before + 1);
    });
  };

  let running: AbortController | undefined;
  onCleanup(() => running?.abort());
  createEffect(
    on(asked, (now) => {
      running?.abort();
      setMistake(null);
      setFailure("");
      if (now === null) {
        setBusy(false);
        return;
      }
      const mine = new AbortController();
      running = mine;
      points = new Map();
      setBusy(true);
      drawSoon();
      const engine = pool.cancelledBy(mine.signal);
      // The corners tell whether the question can be asked at all, with the sentence of the command line.
      const corner = planOf(now.shared, cellAt(now.x.low, now.y.low), now.candidates[0] ?? "", now.goal).alone;
      engine
        .resolve(corner)
        .then(() =>
          compute(now, engine, kept, (point) => {
            points.set(point.row * now.steps + point.column, point);
            drawSoon();
          }, mine.signal),
        )
        .then(() => setBusy(false))
        .catch((error: unknown) => {
          if (mine.signal.aborted) return;
          mine.abort();
          setBusy(false);
          if (error instanceof MistakeError) setMistake(error.mistake);
          else setFailure(error instanceof Error ? error.message : String(error));
        });
    }),
  );

  const picture = (): Picture | null => {
    const now = asked();
    return now && { candidates: now.candidates, steps: now.steps, x: now.x, y: now.y, at, title: `Who is best (${now.goal}), buffer ${now.shared.buffer}` };
  };
  const [width, setWidth] = createSignal(600);
  const drawn = createMemo(() => {
    version();
    const now = picture();
    return now === null ? "" : mapSvg(now, PAGE, width());
  });
  const shares = createMemo(() => {
    version();
    const now = asked();
    if (now === null || points.size === 0) return null;
    const all = [...points.values()];
    const share = (of: (point: Point) => boolean) => Math.round((100 * all.filter(of).length) / all.length);
    return {
      done: all.length,
      of: now.steps ** 2,
      parts: now.candidates.map((name, index) => ({ name, share: share(({ ranking }) => ranking.winner === index) })),
      none: share(({ ranking }) => ranking.winner === null),
    };
  });

  // The place that is looked at, by pointer or keyboard.
  const [place, setPlace] = createSignal<{ column: number; row: number } | null>(null);
  const shown = createMemo(() => {
    version();
    const now = place();
    return now === null ? undefined : at(now.column, now.row);
  });
  const frame = () => frameOf(width(), steps(), candidates().length);
  let surface: HTMLDivElement | undefined;
  const placeOfPointer = (event: MouseEvent) => {
    if (surface === undefined) return null;
    const box = surface.getBoundingClientRect();
    const { left, top, cell } = frame();
    const column = Math.floor((event.clientX - box.left - left) / cell);
    const row = steps() - 1 - Math.floor((event.clientY - box.top - top) / cell);
    return column >= 0 && column < steps() && row >= 0 && row < steps() ? { column, row } : null;
  };
  const move = (columns: number, rows: number) => {
    const most = steps() - 1;
    const now = place() ?? { column: Math.floor(most / 2), row: Math.floor(most / 2) };
    const inside = (value: number) => Math.min(Math.max(value, 0), most);
    setPlace(place() === null ? now : { column: inside(now.column + columns), row: inside(now.row + rows) });
  };
  const open = () => {
    const point = shown();
    if (point === undefined) return;
    const { buffer, loss, jitter, queue, ecn, competitors } = setup;
    go("compare", {
      ...DEFAULTS, buffer, loss, jitter, queue, ecn, pacing: true, competitors: competitors.map((one) => ({ ...one })), seed: 1,
      ...cellText(point.cell), controllers: candidates(),
    }, { seeds: String(seeds()) });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const moves: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const by = moves[event.key];
    if (by !== undefined) move(...by);
    else if (event.key === "Enter") open();
    else if (event.key === "Escape") setPlace(null);
    else return;
    event.preventDefault();
  };
  onMount(() => {
    if (surface === undefined) return;
    const watch = new ResizeObserver(() => setWidth(Math.max(280, Math.floor(surface?.clientWidth ?? 600))));
    watch.observe(surface);
    onCleanup(() => {
      watch.disconnect();
    });
  });

  // The slider of the buffer, in the unit that its text has.
  const buffer = () => amountOf("size", setup.buffer);
  const bufferUnit = () => (buffer()?.unit === "bdp" ? "bdp" : "base");
  const slide = (position: number) => {
    const unit = bufferUnit();
    change({ buffer: textOf("size", { value: valueAt(position, bufferRange(unit)), unit }) });
  };

  const command = () => {
    const words = [
      "fullpipe map", `--x=${shellWord(`rate=${end("x", "low")}..${end("x", "high")}`)}`, `--y=${shellWord(`rtt=${end("y", "low")}..${end("y", "high")}`)}`,
      ...(setup.buffer === DEFAULTS.buffer ? [] : [`--buffer=${shellWord(setup.buffer)}`]), `--for=${goal()}`,
      ...candidates().map((one) => `--candidates=${shellWord(one)}`), `--steps=${String(steps())}`, `--seeds=${String(seeds())}`,
    ];
    if (setup.loss !== "") words.push(`--loss=${shellWord(setup.loss)}`);
    if (setup.jitter !== "") words.push(`--jitter=${shellWord(setup.jitter)}`);
    if (setup.queue !== DEFAULTS.queue) words.push(`--queue=${shellWord(setup.queue)}`);
    if (setup.ecn) words.push("--ecn");
    for (const { controller, count } of setup.competitors) words.push(`--competitors=${shellWord(`${controller}:${String(count)}`)}`);
    return words.join(" ");
  };
  const drawings = (): Drawing[] => {
    const now = untrack(picture);
    if (now === null) return [];
    const header = ["rate [bit/s]", "rtt [s]", "winner", "ahead", ...now.candidates.map((name) => `score, ${name}`)];
    const rows = () =>
      [...points.values()].sort((a, b) => a.row - b.row || a.column - b.column).map(({ cell, ranking }) => [
        cell.rate_bps, cell.rtt_us / 1e6, ranking.winner === null ? "" : (now.candidates[ranking.winner] ?? ""), ranking.ahead,
        ...now.candidates.map((_, index) => ranking.places.find(({ candidate }) => candidate === index)?.score.mean),
      ]);
    return [{ name: "map", svg: (palette) => mapSvg(now, palette, 760), csv: () => csv(header, rows()) }];
  };

  const percent = (value: number) => `${(100 * value).toFixed(Math.abs(value) < 0.0995 ? 1 : 0)} %`;
  const words = (point: Point): string => {
    const { places, winner, ahead } = point.ranking;
    const where = `${rateText(point.cell.rate_bps)}, ${timeText(point.cell.rtt_us / 1e6)}`;
    const first = candidates()[places[0]?.candidate ?? 0] ?? "";
    return winner === null ? `${where}: no clear winner` : `${where}: ${first} is best, ${percent(ahead)} ahead`;
  };

  return (
    <div class="bench map">
      <SetupPanel
        catalogue={catalogue()}
        mistake={null}
        form="comparison"
        without={["rate", "rtt", "buffer", "pacing", "duration", "seed"]}
      >
        <fieldset>
          <legend>Map</legend>
          <Field label="What counts" wrong={null} hint={`Score: ${MEANS[goal()]}.`}>
            {(tied) => (
              <select {...tied} onChange={(event) => say({ for: event.currentTarget.value })}>
                <For each={GOALS}>{(one) => <option value={one} selected={one === goal()}>{one}</option>}</For>
              </select>
            )}
          </Field>
          <For each={["x", "y"] as const}>
            {(axis) => (
              <div class="pair">
                <Index each={["low", "high"] as const}>
                  {(which) => (
                    <Field label={`${axis === "x" ? "Rate" : "RTT"} ${which() === "low" ? "from" : "to"}`} wrong={which() === "low" ? rangeWrong(axis) : null}>
                      {(tied) => (
                        <input
                          {...tied}
                          type="text"
                          autocomplete="off"
                          spellcheck={false}
                          value={end(axis, which())}
                          onChange={(event) => say({ [`${axis}-${which()}`]: event.currentTarget.value.trim() })}
                        />
                      )}
                    </Field>
                  )}
                </Index>
              </div>
            )}
          </For>
          <div class="pair">
            <Field label="Values on an axis" wrong={null}>
              {(tied) => (
                <select {...tied} onChange={(event) => say({ steps: event.currentTarget.value })}>
                  <For each={STEPS}>{(one) => <option value={String(one)} selected={one === steps()}>{one}</option>}</For>
                </select>
              )}
            </Field>
            <Field label="Seeds" wrong={null}>
              {(tied) => (
                <select {...tied} onChange={(event) => say({ seeds: event.currentTarget.value })}>
                  <For each={SEEDS}>{(one) => <option value={String(one)} selected={one === seeds()}>{one}</option>}</For>
                </select>
              )}
            </Field>
          </div>
          <Field label="Runs" wrong={null}>
            {(tied) => (
              <select {...tied} onChange={(event) => say({ length: event.currentTarget.value })}>
                <For each={LENGTHS}>
                  {(one) => <option value={one} selected={one === length()}>{one === "short" ? "short: 2 to 30 s" : "as fullpipe map: 3 to 60 s"}</option>}
                </For>
              </select>
            )}
          </Field>
        </fieldset>
      </SetupPanel>
      <section class="map-result" aria-label="Decision map">
        <div class="map-buffer">
          <label for={`${id}-buffer`}>Buffer</label>
          <input
            id={`${id}-buffer`}
            type="range"
            min="0"
            max={SLIDER_STEPS}
            step="10"
            aria-valuetext={setup.buffer}
            value={positionOf(buffer()?.value ?? 1, bufferRange(bufferUnit()))}
            onInput={(event) => slide(Number(event.currentTarget.value))}
          />
          <input
            type="text"
            aria-label="Buffer, as text"
            autocomplete="off"
            spellcheck={false}
            value={setup.buffer}
            onChange={(event) => change({ buffer: event.currentTarget.value.trim() })}
          />
          <select
            aria-label="Unit of the buffer"
            value={bufferUnit()}
            onChange={(event) => change({ buffer: event.currentTarget.value === "bdp" ? "1 bdp" : "250 KB" })}
          >
            <option value="bdp">BDP of each path</option>
            <option value="base">bytes</option>
          </select>
        </div>
        <Show when={setup.text !== ""}>
          <p>A map varies the rate and the RTT of a path from the form. <button type="button" onClick={() => change({ text: "" })}>Back to the form</button></p>
        </Show>
        <Show when={setup.text === "" && candidates().length < 2}>
          <p>A map compares two to four different controllers: add one.</p>
        </Show>
        <Show when={mistake()}>{(one) => <p class="wrong" role="alert">{one().message}</p>}</Show>
        <Show when={failure()}><p class="wrong" role="alert">{failure()}</p></Show>
        <div
          ref={surface}
          class="map-surface"
          tabindex="0"
          role="application"
          aria-label={`Map of rate and round-trip time. Arrow keys move, Enter opens the run in Compare.`}
          aria-describedby={`${id}-said`}
          onKeyDown={onKeyDown}
          onFocus={() => { if (place() === null) move(0, 0); }}
          onPointerMove={(event) => { const found = placeOfPointer(event); if (found !== null || event.pointerType === "mouse") setPlace(found); }}
          onPointerLeave={(event) => { if (event.pointerType === "mouse") setPlace(null); }}
          onClick={(event) => { const found = placeOfPointer(event); if (found !== null) { setPlace(found); open(); } }}
        >
          {/* All that a stranger's link can bring into it is escaped where it is drawn. */}
          {/* eslint-disable-next-line solid/no-innerhtml */}
          <div class="map-drawing" aria-hidden="true" innerHTML={drawn()} />
          <Show when={place()}>
            {(now) => (
              <span
                class="map-cursor"
                style={{
                  left: `${String(frame().left + now().column * frame().cell)}px`,
                  top: `${String(frame().top + (steps() - 1 - now().row) * frame().cell)}px`,
                  width: `${String(frame().cell)}px`,
                  height: `${String(frame().cell)}px`,
                }}
              />
            )}
          </Show>
        </div>
        <div class="map-beside">
          <div class="map-cell" id={`${id}-said`} role="status">
            <Show when={shown()} fallback={<p class="quiet">{place() === null ? "Point at a cell, or move with the arrow keys, for its numbers; a click or Enter opens that run in Compare." : "Not computed yet."}</p>}>
              {(point) => (
                <>
                  <p><strong>{words(point())}</strong></p>
                  <table>
                    <thead><tr><th scope="col">Controller</th><th scope="col">Score</th><th scope="col">Goodput</th><th scope="col">p95 RTT</th><th scope="col">Resent</th></tr></thead>
                    <tbody>
                      <For each={point().ranking.places}>
                        {(one) => {
                          const trials = () => point().trials[one.candidate] ?? [];
                          const mean = (of: (trial: Trial) => number) =>
                            trials().reduce((sum, trial) => sum + of(trial), 0) / Math.max(trials().length, 1);
                          return (
                            <tr>
                              <th scope="row">{LETTERS[one.candidate]} {candidates()[one.candidate]}</th>
                              <td>{one.score.mean.toFixed(3)}</td>
                              <td>{rateText(mean((trial) => trial.goodput_bps))}</td>
                              <td>{timeText(mean((trial) => trial.rtt_p95_s))}</td>
                              <td>{percent(mean((trial) => trial.retransmitted))}</td>
                            </tr>
                          );
                        }}
                      </For>
                    </tbody>
                  </table>
                </>
              )}
            </Show>
          </div>
          <Show when={shares()}>
            {(now) => (
              <p aria-live="off">
                {busy() ? `${String(now().done)} of ${String(now().of)} paths so far. ` : `${String(now().of)} paths. `}
                Clear winner: <For each={now().parts}>{(part, index) => <>{index() > 0 ? ", " : ""}<strong>{part.name}</strong> {part.share} %</>}</For>; none {now().none} %.
              </p>
            )}
          </Show>
          <p class="quiet map-rule">
            The rule: candidates meet the same seeds and are compared seed by seed. One is behind if the 95 % confidence interval of its difference to the best is above {ALIKE * 100} % of
            the best one's score. If all others are behind, the best one is the clear winner; otherwise the cell is hatched. The hosts pace every flow, as fq does. A buffer holds at least one packet. The stronger the colour, the farther it is ahead (30 % and more: full colour).
          </p>
          <ExportMenu form="comparison" noRun drawings={drawings} commands={() => [{ name: length() === "full" ? "the map on the command line" : "the map on the command line, with longer runs", text: command() }]} />
        </div>
      </section>
    </div>
  );
}
