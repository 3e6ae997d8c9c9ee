// Live: the run goes on at the speed one sets, and the path changes while it does.

import "./live.css";

import { createEffect, createMemo, createSignal, For, Index, on, onCleanup, onMount, Show, untrack } from "solid-js";

import { createChartGroup } from "../../charts/group";
import { SeriesChart, Swatch } from "../../charts/series-chart";
import { noteOf, phaseName, spansOf, type ChartContent, type Line, type Mark, type Reference } from "../../charts/series";
import type { Alternative, Mistake, Step } from "../../engine/protocol";
import { drawingOf } from "../../export/drawing";
import { ExportMenu } from "../../export/export-menu";
import { setup } from "../../state/place";
import { amountOf, rateText, sizeText, timeText } from "../../ui/quantity";
import { catalogue, pageEngine, pagePool } from "../../ui/engines";
import { SetupPanel } from "../../ui/setup-panel";
import { bufferBytes, changeOf, changeText, LIVE_S, liveDocument, pathOf, shortNames, type Path } from "./document";
import { Flight } from "./flight";
import { FLOW_COLUMNS, QUEUE_COLUMNS, Series } from "./history";
import { MOST_ROWS, PathCanvas, type PathNow, type Picture } from "./path-canvas";
import { createPlayer, FASTEST, SLOWEST, type PlayState } from "./player";

/** Of the slider of the speed, each a factor of 10^(1/5). */
const SPEED_STEPS = Math.round(Math.log10(FASTEST / SLOWEST) * 5);
const WINDOWS_S = [2, 5, 10, 30, 60, 200];
/** What a press of "Step" advances, in seconds of the run. */
const STEP_S = 0.01;
/** Charts are drawn at most this often, in milliseconds; less often for those who want less motion. */
const CHARTS_MS = 33;
const CALM_CHARTS_MS = 1000;
/** Over how long a goodput is averaged, in seconds. */
const AVERAGED_S = 0.1;
const MOST_MARKS = 200;
const MOST_PATHS = 2000;

function speedAt(position: number): number {
  return Number((SLOWEST * 10 ** (position / 5)).toPrecision(2));
}

/** What is known of a run from its beginning on; a new run has a new one. */
interface Running {
  alternative: Alternative;
  flight: Flight;
  flows: Series[];
  queues: Series[];
  queue: number;
  marks: Mark[];
  /** The path as it is now; null for a scenario of the visitor's own. */
  path: Path | null;
  /** The paths that the run has had, and from when on. */
  paths: { from: number; path: Path }[];
  /** What has to be known to read the goodput, once it has been needed. */
  note?: string | undefined;
}

export default function Live() {
  const group = createChartGroup();
  const [state, setState] = createSignal<PlayState>("opening");
  const [running, setRunning] = createSignal<Running | null>(null);
  const [step, setStep] = createSignal<Step | null>(null);
  const [charted, setCharted] = createSignal(0, { equals: false });
  const [notes, setNotes] = createSignal<readonly string[]>([]);
  const [mistake, setMistake] = createSignal<Mistake | null>(null);
  const [failure, setFailure] = createSignal("");
  const [notice, setNotice] = createSignal("");
  const [speedPosition, setSpeedPosition] = createSignal(SPEED_STEPS / 2);
  const [reached, setReached] = createSignal<number | null>(null);
  const [window_s, setWindow] = createSignal(10);
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const [still, setStill] = createSignal(calm.matches);
  const follow = () => setStill(calm.matches);
  calm.addEventListener("change", follow);

  const speed = () => speedAt(speedPosition());
  let paint: ((picture: Picture) => void) | undefined;
  let painted_ms = 0;
  let charted_ms = 0;

  const player = createPlayer(pageEngine(), {
    onState: (now) => {
      setState(now);
      setCharted(0);
    },
    onOpen: (alternative, wording) => {
      setNotes(wording);
      setFailure("");
      group.setZoom(null);
      setRunning({
        alternative,
        flight: new Flight(alternative.mss_bytes),
        flows: alternative.flows.slice(0, MOST_ROWS).map(() => new Series(FLOW_COLUMNS)),
        queues: alternative.queues.map(() => new Series(QUEUE_COLUMNS)),
        queue: Math.max(alternative.queues.indexOf("bottleneck"), 0),
        marks: [],
        path: setup.text === "" ? asked : null,
        paths: setup.text === "" ? [{ from: 0, path: asked }] : [],
      });
      setStep(null);
      sendChange();
    },
    onStep: (taken) => {
      const now = running();
      if (now === null) return;
      now.flight.add(taken, now.queue);
      now.flows.forEach((series, index) => {
        const table = taken.flow_series[index];
        if (table !== undefined) series.add(table);
      });
      now.queues.forEach((series, index) => {
        const table = taken.queue_series[index];
        if (table !== undefined) series.add(table);
      });
      setStep(taken);
      draw();
      const at_ms = performance.now();
      if (at_ms - charted_ms < (still() ? CALM_CHARTS_MS : CHARTS_MS) && state() === "playing" && taken.running) return;
      charted_ms = at_ms;
      setCharted(0);
    },
    onChange: (change, at_s) => {
      const now = running();
      if (now === null) return;
      now.path = asked;
      now.paths.push({ from: at_s, path: asked });
      if (now.paths.length > MOST_PATHS) now.paths.shift();
      const last = now.marks.at(-1);
      const label = changeText(change);
      // A slider that is dragged is one change in the charts: the last of those within a tenth of the window.
      if (last !== undefined && at_s - last.at < window_s() / 40) now.marks.pop();
      now.marks.push({ at: at_s, label });
      if (now.marks.length > MOST_MARKS) now.marks.shift();
      setNotice(`${label} from ${at_s.toFixed(2)} s on.`);
      setCharted(0);
      draw();
    },
    onMistake: setMistake,
    onFailure: setFailure,
    onReached: setReached,
  });

  // The path that the run was last asked to have.
  let asked: Path = pathOf(setup);

  function open(why: string): void {
    asked = pathOf(setup);
    setNotice(why);
    player.open({ document: liveDocument(setup), seed: setup.seed });
  }

  function sendChange(): void {
    const wanted = pathOf(setup);
    const change = changeOf(asked, wanted);
    if (change === null) return;
    asked = wanted;
    player.change(change);
  }

  /** All that a run cannot change while it goes on. */
  const fixed = () =>
    JSON.stringify([setup.text, setup.queue, setup.jitter, setup.ecn, setup.pacing, setup.controllers, setup.competitors, setup.duration, setup.seed]);
  createEffect(on(fixed, (_, before) => open(before === undefined ? "" : "Begun again from 0 s, with the new setup.")));
  createEffect(
    on(
      () => JSON.stringify(pathOf(setup)),
      () => {
        if (setup.text !== "") return;
        // A run that was refused begins anew; one that is being opened is changed once it is there.
        if (state() === "failed") open("");
        else if (state() !== "opening") sendChange();
      },
      { defer: true },
    ),
  );
  createEffect(() => player.setSpeed(speed()));

  onMount(() => {
    const visible = () => player.setHidden(document.hidden);
    document.addEventListener("visibilitychange", visible);
    document.addEventListener("keydown", onKey);
    visible();
    onCleanup(() => {
      document.removeEventListener("visibilitychange", visible);
      document.removeEventListener("keydown", onKey);
      calm.removeEventListener("change", follow);
      player.close();
    });
  });

  function toggle(): void {
    if (refused() !== null) return;
    if (state() === "playing") player.pause();
    else if (state() === "ended" || state() === "failed") {
      player.play();
      open("Begun again from 0 s.");
    } else player.play();
  }

  function faster(by: number): void {
    setSpeedPosition((before) => Math.min(Math.max(before + by, 0), SPEED_STEPS));
  }

  function onKey(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target instanceof HTMLElement ? event.target : null;
    // Where a key means something already, it means that.
    if (target?.closest("input, textarea, select") !== null && target !== null) return;
    const onButton = target?.closest("button, a, summary, label") ?? null;
    switch (event.key) {
      case " ":
        if (onButton !== null) return;
        toggle();
        break;
      case "s":
        player.step(STEP_S);
        break;
      case "r":
        open("Begun again from 0 s.");
        break;
      case "[":
        faster(-1);
        break;
      case "]":
        faster(1);
        break;
      default:
        return;
    }
    event.preventDefault();
  }

  /** The path as it is now, in numbers. */
  function pathNow(now: Running): PathNow {
    return inNumbers(now, now.path);
  }

  function inNumbers(now: Running, wording: Path | null): PathNow {
    const { facts, mss_bytes } = now.alternative;
    const rtt_s = (wording && amountOf("duration", wording.rtt)?.value) ?? facts.rtt_s ?? step()?.flows[0]?.min_rtt_s ?? 0;
    return {
      rate_bps: (wording && amountOf("rate", wording.rate)?.value) ?? facts.rate_bps,
      delay_s: rtt_s / 2,
      buffer_bytes: (wording && bufferBytes(wording, mss_bytes)) ?? facts.buffer_bytes,
      mss_bytes,
      queue: now.queue,
    };
  }

  function draw(): void {
    const now = running();
    const taken = step();
    if (now === null || taken === null || paint === undefined) return;
    const now_ms = performance.now();
    const path = pathNow(now);
    const passed_s = Math.min((now_ms - painted_ms) / 1000, 0.1);
    painted_ms = now_ms;
    paint({ step: taken, names: shortNames(now.alternative.flows), scene: now.flight.scene(path.delay_s, passed_s), path, now_ms });
  }

  const names = () => running()?.alternative.flows.map(({ label, controller }) => (label === controller ? label : label || controller)) ?? [];

  const contents = createMemo((): ChartContent[] => {
    charted();
    const now = running();
    const known = catalogue();
    if (now === null || known === undefined) return [];
    const at_s = untrack(step)?.now_s ?? 0;
    const extent = [Math.max(at_s - window_s(), 0), Math.max(at_s, window_s())] as const;
    const from_s = Math.min(group.zoom()?.[0] ?? extent[0], extent[0]);
    const path = pathNow(now);
    const label = (index: number) => names()[index] ?? String(index + 1);
    const lines = (take: (series: Series, from: number) => Float64Array): Line[] =>
      now.flows.map((series, index) => {
        const from = series.rowFor(from_s);
        return { label: label(index), series: index, x: series.column("time_s", from), y: take(series, from) };
      });
    const past = now.paths.map((one) => ({ from: one.from, path: inNumbers(now, one.path) }));
    const reference = (take: (of: PathNow) => number | null, name: string): Reference[] => {
      const value = take(path);
      if (value === null) return [];
      const steps = past.map((one) => ({ from: one.from, value: take(one.path) ?? value }));
      // A value that did not change is one step.
      return [{ value, label: name, steps: steps.filter((one, at) => one.value !== steps[at - 1]?.value) }];
    };
    const link = reference(({ rate_bps }) => rate_bps, "link");
    const goodput = lines((series, row) => series.rate("delivered_bytes", AVERAGED_S, row));
    const lanes = now.flows.slice(0, 4).map((series, index) => {
      const from = series.rowFor(from_s);
      return { label: label(index), series: index, spans: spansOf(series.column("time_s", from), series.column("phase", from), known.phases) };
    });
    const queue = now.queues[now.queue];
    const from = queue?.rowFor(from_s) ?? 0;
    const marks = [...now.marks];
    // Once said, it stays: the page does not jump each time.
    now.note ??= noteOf(goodput, link, (path.mss_bytes * 8) / AVERAGED_S, extent);
    return [
      {
        title: `Goodput over ${String(AVERAGED_S * 1000)} ms`, kind: "rate", extent, lanes, marks,
        lines: goodput,
        references: link,
        note: now.note,
      },
      {
        title: "RTT, smoothed", kind: "time", extent, marks: bare(marks),
        lines: lines((series, row) => series.column("srtt_s", row)),
        references: reference(({ delay_s }) => (delay_s === 0 ? null : delay_s * 2), "without a queue"),
      },
      {
        title: "Window, and in flight (dotted)", kind: "segments", extent, marks: bare(marks),
        lines: lines((series, row) => series.column("cwnd", row)).flatMap((line, index) => {
          const series = now.flows[index];
          if (series === undefined) return [line];
          return [line, { ...line, label: `${line.label} in flight`, y: series.column("inflight", series.rowFor(from_s)), dash: 4, width: 1.1, unlisted: true }];
        }),
        references: reference((of) => (of.rate_bps === null ? null : (of.rate_bps * of.delay_s * 2) / 8 / of.mss_bytes), "BDP"),
      },
      {
        title: "Queue", kind: "bytes", extent, marks: bare(marks),
        lines: queue === undefined ? [] : [{ label: "queue", series: 4, dash: 0, x: queue.column("time_s", from), y: queue.column("queue_bytes", from) }],
        references: reference(({ buffer_bytes }) => buffer_bytes, "buffer"),
      },
    ];
  });

  /** Why there is no run; it begins once that is corrected. */
  const refused = () => (state() === "failed" ? mistake() : null);
  const PLAY_WORDS: Record<PlayState, string> = { opening: "Play", playing: "Pause", paused: "Play", ended: "Play again", failed: "Try again" };
  const falls = () => {
    const is = reached();
    return is !== null && is < speed() * 0.85 ? `The engine reaches ${is >= 10 ? is.toFixed(0) : is.toPrecision(2)}× of ${String(speed())}×.` : "";
  };

  return (
    <div class="bench live" data-state={state()}>
      <SetupPanel catalogue={catalogue()} mistake={mistake()} notes={notes()} form="shared" hints={{
        duration: `Live runs go on for ${String(LIVE_S)} s at least.`,
      }}>
        <p class="quiet note">Rate, RTT, buffer and loss change the run as it goes on; anything else begins it again.</p>
      </SetupPanel>
      <section class="found" aria-label="Live run">
        <div class="transport" role="toolbar" aria-label="Run">
          <button type="button" class="primary play" onClick={toggle} disabled={refused() !== null} aria-keyshortcuts="Space" title="Space">
            {refused() === null ? PLAY_WORDS[state()] : "Play"}
          </button>
          <button type="button" onClick={() => player.step(STEP_S)} aria-keyshortcuts="S" title="S: 10 ms of the run">Step</button>
          <button type="button" onClick={() => open("Begun again from 0 s.")} aria-keyshortcuts="R" title="R">Restart</button>
          <label class="speed" title="[ slower, ] faster">
            <span>Speed</span>
            <input type="range" min="0" max={SPEED_STEPS} step="1" value={speedPosition()} aria-valuetext={`${String(speed())} times real time`}
              aria-keyshortcuts="[ ]" onInput={(event) => setSpeedPosition(Number(event.currentTarget.value))} />
            <output>{speed()}×</output>
          </label>
          <span class="clock"><span class="sr">Time of the run </span>{(step()?.now_s ?? 0).toFixed(2)} s</span>
        </div>
        <p class="sr" role="status">{state() === "ended" ? "The run is over." : state() === "paused" ? "Paused." : ""}</p>
        <Show when={failure()}><p class="wrong" role="alert">{failure()}</p></Show>
        <Show when={refused()}>
          {(found) => <p class="wrong">The setup is wrong, so there is no run: {found().message}</p>}
        </Show>
        <p class="notice quiet" role="status">{[notice(), falls()].filter(Boolean).join(" ") || "\u00a0"}</p>
        <Show when={!still()}>
          <PathCanvas draw={(painter) => { paint = painter; draw(); }}
            label="The path: windows, queue, packets on their way and ACKs on theirs. The table below has the same in numbers." />
        </Show>
        <Show when={still()}>
          <InNumbers step={step()} path={(step(), running() === null ? null : pathNow(running() as Running))} />
        </Show>
        <div class="scroll" tabindex="0" role="region" aria-label="Flows now" hidden={refused() !== null}>
          <table class="measures flows">
            <thead>
              <tr>
                <For each={["Flow", "Phase", "Window", "In flight", "RTT", "Delivers", "Lost", "Sent again"]}>{(title) => <th scope="col" class={title === "Phase" ? "word" : undefined}>{title}</th>}</For>
              </tr>
            </thead>
            <tbody>
              <Index each={step()?.flows.slice(0, MOST_ROWS) ?? []}>
                {(flow, index) => (
                  <tr>
                    <th scope="row"><Swatch series={index} /><span>{names()[index]}</span></th>
                    <td class="word">{flow().ended_s !== null ? "ended" : flow().phase === null ? "–" : phaseName(flow().phase ?? "")}</td>
                    <td>{flow().cwnd ?? "–"}</td>
                    <td>{flow().inflight}</td>
                    <td>{timeText(flow().srtt_s)}</td>
                    <td>{rateText(flow().delivery_bps)}</td>
                    <td>{flow().lost}</td>
                    <td>{flow().retransmits}</td>
                  </tr>
                )}
              </Index>
            </tbody>
          </table>
          <Show when={(step()?.flows.length ?? 0) > MOST_ROWS}>
            <p class="quiet">And {String((step()?.flows.length ?? 0) - MOST_ROWS)} more flows.</p>
          </Show>
        </div>
        <div class="about quiet">
          <label>
            <span>Show the last</span>
            <select value={window_s()} onChange={(event) => setWindow(Number(event.currentTarget.value))}>
              <For each={WINDOWS_S}>{(seconds) => <option value={seconds}>{seconds} s</option>}</For>
            </select>
          </label>
          <span>Keys: Space plays and pauses, S steps, R restarts, [ and ] change the speed.</span>
        </div>
        <Index each={contents()}>
          {(content, index) => <SeriesChart content={content()} group={group} height={index === 0 ? 165 : 125} times={index === contents().length - 1} />}
        </Index>
        <ExportMenu form="shared" drawings={() => contents().map(drawingOf)} engine={pagePool()}
          note="These are of the setup from its start, for its duration: without what was changed while it ran." />
      </section>
    </div>
  );
}

/** Marks without their words: the first chart has them. */
function bare(marks: Mark[]): Mark[] {
  return marks.map(({ at }) => ({ at, label: "" }));
}

/** The path in numbers, instead of the animation. */
function InNumbers(props: { step: Step | null; path: PathNow | null }) {
  const queue = () => (props.path === null ? undefined : props.step?.queues[props.path.queue]);
  return (
    <dl class="numbers">
      <div><dt>Link</dt><dd>{rateText(props.path?.rate_bps)}</dd></div>
      <div><dt>One-way delay</dt><dd>{timeText(props.path?.delay_s)}</dd></div>
      <div><dt>Queue</dt><dd>{sizeText(queue()?.backlog_bytes)} of {sizeText(props.path?.buffer_bytes)}</dd></div>
      <div><dt>Waiting time</dt><dd>{timeText(queue()?.delay_s)}</dd></div>
      <div><dt>Dropped by the queue</dt><dd>{queue()?.dropped_packets ?? "–"}</dd></div>
      <div><dt>Marked</dt><dd>{queue()?.marked_packets ?? "–"}</dd></div>
    </dl>
  );
}
