// Plays a live run: so much of it each frame as the speed asks for and the engine can do.
//
// The engine is in a worker, and has one request at a time. A frame asks for what has passed since the last request, times the
// speed, but for no more than the engine does in 8 ms: where that is less, the run falls back, and `reached` says to which speed.
// Nothing runs while the run is paused, over, or the page is hidden: no frame, no timer.

import { MistakeError, type Alternative, type Change, type Engine, type Live, type Mistake, type RunRequest, type Step } from "../../engine/protocol";

export const SLOWEST = 0.01;
export const FASTEST = 100;

/** What the engine may compute for one frame, in milliseconds. */
const BUDGET_MS = 8;
/** How much of a run is asked for before it is known what that takes, and at least, in seconds. */
const FIRST_S = 0.02;
const LEAST_S = 0.001;
/** Of how many requests it is known what they took. */
const COSTS = 20;
/** After a longer pause than this between two frames, the run does not catch up. */
const LONGEST_FRAME_MS = 100;
/** Over how long the speed that is reached is measured. */
const MEASURED_MS = 500;

export type PlayState = "opening" | "playing" | "paused" | "ended" | "failed";

/** Where frames come from; tests bring their own. */
export interface Frames {
  request: (frame: (now_ms: number) => void) => number;
  cancel: (id: number) => void;
  now: () => number;
}

export const BROWSER_FRAMES: Frames = {
  request: (frame) => requestAnimationFrame(frame),
  cancel: (id) => {
    cancelAnimationFrame(id);
  },
  now: () => performance.now(),
};

export interface PlayerEvents {
  onState: (state: PlayState) => void;
  /** A new run; what is drawn of the one before is void. */
  onOpen: (alternative: Alternative, notes: readonly string[]) => void;
  onStep: (step: Step) => void;
  /** The path did change. */
  onChange: (change: Change, at_s: number) => void;
  /** A scenario or a change that the engine refuses; null once one is taken. */
  onMistake: (mistake: Mistake | null) => void;
  /** Anything else that went wrong. */
  onFailure: (message: string) => void;
  /** The speed that is reached, measured now and then; null while nothing is played. */
  onReached: (speed: number | null) => void;
}

export interface Player {
  /** Begins a run; plays on if the one before played, or if it is the first. */
  open: (request: RunRequest) => void;
  play: () => void;
  pause: () => void;
  /** Advances by some seconds of the run, and pauses. */
  step: (by_s: number) => void;
  setSpeed: (speed: number) => void;
  /** Changes the path: at the next frame, together with what else is asked for before it. */
  change: (change: Change) => void;
  setHidden: (hidden: boolean) => void;
  /** The run, if there is one. */
  live: () => Live | null;
  close: () => void;
}

export function createPlayer(engine: Engine, events: PlayerEvents, frames: Frames = BROWSER_FRAMES): Player {
  let live: Live | null = null;
  let state: PlayState = "opening";
  let wantsPlay = true;
  let hidden = false;
  let speed = 1;
  let now_s = 0;
  // A run that is replaced while it is asked something: what it answers is void.
  let generation = 0;
  let busy = false;
  let frame: number | undefined;
  let asked_ms = 0;
  let pending: Change | null = null;
  let toStep_s = 0;
  /** How many milliseconds a second of the run took the engine, lately. */
  let costs: number[] = [];
  let measured = { at_ms: 0, at_s: 0 };

  function enter(next: PlayState): void {
    if (state === next) return;
    state = next;
    if (next !== "playing") events.onReached(null);
    events.onState(next);
  }

  function fail(error: unknown): void {
    if (error instanceof MistakeError) events.onMistake(error.mistake);
    else events.onFailure(error instanceof Error ? error.message : String(error));
  }

  function wanted(): boolean {
    return live !== null && !busy && !hidden && (state === "playing" || pending !== null || toStep_s > 0);
  }

  function schedule(): void {
    if (frame === undefined && !hidden && live !== null && (state === "playing" || wanted())) frame = frames.request(onFrame);
  }

  function startClock(): void {
    asked_ms = frames.now();
    measured = { at_ms: asked_ms, at_s: now_s };
  }

  function onFrame(at_ms: number): void {
    frame = undefined;
    if (wanted()) void turn(at_ms);
    schedule();
  }

  /** One request: first the changes, then the time. */
  async function turn(at_ms: number): Promise<void> {
    if (live === null) return;
    const of = generation;
    const run = live;
    busy = true;
    try {
      if (pending !== null) {
        const change = pending;
        pending = null;
        try {
          await run.change(change);
          if (of === generation) {
            events.onMistake(null);
            events.onChange(change, now_s);
          }
        } catch (error) {
          if (of === generation) fail(error);
        }
      }
      const by_s = toStep_s > 0 ? toStep_s : state === "playing" ? due(at_ms) : 0;
      toStep_s = 0;
      if (of !== generation || by_s <= 0) return;
      const began_ms = frames.now();
      const step = await run.advance(now_s + by_s);
      if (of !== generation) return;
      const taken_ms = frames.now() - began_ms;
      if (step.now_s > now_s) costs = [...costs.slice(1 - COSTS), taken_ms / (step.now_s - now_s)];
      now_s = step.now_s;
      measure();
      events.onStep(step);
      if (!step.running) enter("ended");
    } catch (error) {
      if (of !== generation) return;
      live = null;
      enter("failed");
      fail(error);
    } finally {
      if (of === generation) {
        busy = false;
        schedule();
      }
    }
  }

  /** How much of the run is due, in seconds. */
  function due(at_ms: number): number {
    const passed_s = Math.min(Math.max(at_ms - asked_ms, 0), LONGEST_FRAME_MS) / 1000;
    asked_ms = at_ms;
    // The least: what a request takes beyond it was spent waiting for a busy machine.
    const most_s = costs.length === 0 ? FIRST_S : BUDGET_MS / Math.max(Math.min(...costs), 1e-6);
    return Math.min(passed_s * speed, Math.max(most_s, LEAST_S));
  }

  function measure(): void {
    if (state !== "playing") return;
    const passed_ms = frames.now() - measured.at_ms;
    if (passed_ms < MEASURED_MS) return;
    events.onReached(((now_s - measured.at_s) / passed_ms) * 1000);
    measured = { at_ms: frames.now(), at_s: now_s };
  }

  async function begin(request: RunRequest): Promise<void> {
    generation += 1;
    const of = generation;
    if (frame !== undefined) frames.cancel(frame);
    frame = undefined;
    live?.close();
    live = null;
    pending = null;
    toStep_s = 0;
    now_s = 0;
    costs = [];
    busy = false;
    enter("opening");
    try {
      const { alternatives, notes } = await engine.resolve(request.document);
      if (of !== generation) return;
      const opened = await engine.open(request);
      if (of !== generation) {
        opened.close();
        return;
      }
      const alternative = alternatives[request.alternative ?? 0];
      if (alternative === undefined) throw new Error("the scenario has no such alternative");
      live = opened;
      events.onMistake(null);
      events.onOpen(alternative, notes);
      enter(wantsPlay ? "playing" : "paused");
      startClock();
      schedule();
    } catch (error) {
      if (of !== generation) return;
      enter("failed");
      fail(error);
    }
  }

  return {
    open: (request) => {
      void begin(request);
    },
    play: () => {
      wantsPlay = true;
      if (state !== "paused") return;
      enter("playing");
      startClock();
      schedule();
    },
    pause: () => {
      wantsPlay = false;
      if (state === "playing") enter("paused");
    },
    step: (by_s) => {
      wantsPlay = false;
      if (state === "playing") enter("paused");
      if (state !== "paused") return;
      toStep_s = by_s;
      schedule();
    },
    setSpeed: (to) => {
      speed = Math.min(Math.max(to, SLOWEST), FASTEST);
      measured = { at_ms: frames.now(), at_s: now_s };
    },
    change: (change) => {
      pending = { ...pending, ...change };
      schedule();
    },
    setHidden: (to) => {
      hidden = to;
      if (hidden) {
        if (frame !== undefined) frames.cancel(frame);
        frame = undefined;
      } else {
        startClock();
        schedule();
      }
    },
    live: () => live,
    close: () => {
      generation += 1;
      if (frame !== undefined) frames.cancel(frame);
      frame = undefined;
      live?.close();
      live = null;
    },
  };
}
