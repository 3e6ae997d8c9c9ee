// The canvas of a time-sequence graph: zoom by wheel, drag and keyboard, a crosshair, and a map of the whole run below.

import { createEffect, createSignal, createUniqueId, on, onCleanup, onMount, Show } from "solid-js";

import { colour, themeVersion } from "../../charts/theme";
import { sizeText } from "../../ui/quantity";
import { LOOK, MARGIN, paint, type Colours } from "./draw";
import { inside, KINDS, NAMES, nearest, next, shifted, zoomed, type Found, type Graph, type Kind, type View } from "./model";

export interface SequenceGraphProps {
  graph: Graph;
  shown: ReadonlySet<Kind>;
  view: View;
  setView: (view: View) => void;
}

const HEIGHT = 460;
const SMALL = 56;
const EVENTS: readonly Kind[] = ["retransmission", "timeout", "probe", "drop", "lost"];

function coloursNow(): Colours {
  return {
    text: colour("--text"), quiet: colour("--quiet"), line: colour("--line"), acks: colour("--text"), edge: colour("--quiet"),
    of: Object.fromEntries(KINDS.map((kind) => [kind, colour(LOOK[kind].colour)])) as Record<Kind, string>,
  };
}

/** Makes a canvas as fine as the screen. */
function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = window.devicePixelRatio || 1;
  const [across, up] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== across || canvas.height !== up) {
    canvas.width = across;
    canvas.height = up;
    canvas.style.width = `${String(width)}px`;
    canvas.style.height = `${String(height)}px`;
  }
  const context = canvas.getContext("2d");
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

export function SequenceGraph(props: SequenceGraphProps) {
  const id = createUniqueId();
  const [width, setWidth] = createSignal(800);
  const [pointer, setPointer] = createSignal<{ x: number; y: number } | null>(null);
  const [found, setFound] = createSignal<Found | null>(null);
  let box: HTMLDivElement | undefined;
  let canvas: HTMLCanvasElement | undefined;
  let small: HTMLCanvasElement | undefined;
  const plotWidth = () => Math.max(80, width() - MARGIN.left - MARGIN.right);
  const plotHeight = HEIGHT - MARGIN.top - MARGIN.bottom;

  let frame = 0;
  let smallDue = true;
  const draw = () => {
    frame = 0;
    const context = canvas && sized(canvas, width(), HEIGHT);
    if (context) paint(context, { graph: props.graph, view: props.view, shown: props.shown, width: plotWidth(), height: plotHeight }, coloursNow());
    if (smallDue) drawSmall();
  };
  // The map below changes with the run only; the window in it is an element of its own.
  const drawSmall = () => {
    smallDue = false;
    const context = small && sized(small, plotWidth(), SMALL);
    if (!context) return;
    context.clearRect(0, 0, plotWidth(), SMALL);
    const margin = { graph: props.graph, view: props.graph.whole, shown: props.shown, width: plotWidth(), height: SMALL };
    context.save();
    context.translate(-MARGIN.left, -MARGIN.top);
    paint(context, margin, { ...coloursNow(), line: "transparent", quiet: "transparent" });
    context.restore();
  };
  const drawSoon = () => {
    if (frame === 0) frame = requestAnimationFrame(draw);
  };
  onCleanup(() => {
    cancelAnimationFrame(frame);
  });
  createEffect(
    on([() => props.graph, () => props.shown, width, themeVersion], () => {
      smallDue = true;
      drawSoon();
    }),
  );
  createEffect(on(() => props.view, drawSoon));
  createEffect(on(() => props.graph, () => setFound(null)));

  onMount(() => {
    if (box === undefined) return;
    const watch = new ResizeObserver(() => setWidth(Math.max(240, Math.floor(box?.clientWidth ?? 800))));
    watch.observe(box);
    onCleanup(() => {
      watch.disconnect();
    });
  });

  const go = (view: View) => {
    props.setView(inside(view, props.graph.whole));
  };
  const within = (event: { clientX: number; clientY: number }) => {
    const frame_ = canvas?.getBoundingClientRect() ?? { left: 0, top: 0 };
    return { x: event.clientX - frame_.left - MARGIN.left, y: event.clientY - frame_.top - MARGIN.top };
  };
  const onWheel = (event: WheelEvent) => {
    event.preventDefault();
    const { x, y } = within(event);
    const size = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    const factor = Math.exp(Math.min(Math.max(event.deltaY * size, -400), 400) * 0.002);
    go(zoomed(props.view, factor, x / plotWidth(), 1 - y / plotHeight, { x: !event.altKey, y: !event.shiftKey }));
  };
  const touches = new Map<number, { x: number; y: number }>();
  const onPointerDown = (event: PointerEvent) => {
    canvas?.setPointerCapture(event.pointerId);
    touches.set(event.pointerId, within(event));
  };
  const onPointerMove = (event: PointerEvent) => {
    const now = within(event);
    const before = touches.get(event.pointerId);
    if (before === undefined) {
      setPointer(now);
      setFound(nearest(props.graph, props.view, plotWidth(), plotHeight, now.x, now.y));
      return;
    }
    const other = [...touches].find(([pointerId]) => pointerId !== event.pointerId)?.[1];
    if (other === undefined) {
      go(shifted(props.view, (before.x - now.x) / plotWidth(), (now.y - before.y) / plotHeight));
    } else {
      const far = (a: { x: number; y: number }) => Math.max(Math.hypot(a.x - other.x, a.y - other.y), 10);
      go(zoomed(props.view, far(before) / far(now), (now.x + other.x) / 2 / plotWidth(), 1 - (now.y + other.y) / 2 / plotHeight));
    }
    touches.set(event.pointerId, now);
  };
  const onPointerUp = (event: PointerEvent) => {
    touches.delete(event.pointerId);
  };
  const step = (forwards: boolean) => {
    const kinds = EVENTS.filter((kind) => props.shown.has(kind));
    const to = next(props.graph, kinds, found() ?? (forwards ? props.view.from : props.view.to), forwards);
    if (to === null) return;
    setFound(to);
    const view = props.view;
    const [across, up] = [(view.to - view.from) / 2, (view.high - view.low) / 2];
    const [time, bytes] = [to.time_s, (to.start + to.end) / 2];
    const seen = time > view.from && time < view.to && bytes > view.low && bytes < view.high;
    if (!seen) go({ from: time - across, to: time + across, low: bytes - up, high: bytes + up });
  };
  const place = (one: Found) => ({
    x: MARGIN.left + ((one.time_s - props.view.from) / (props.view.to - props.view.from)) * plotWidth(),
    y: MARGIN.top + plotHeight - (((one.start + one.end) / 2 - props.view.low) / (props.view.high - props.view.low)) * plotHeight,
  });
  const inPlot = (x: number, y: number) => x >= MARGIN.left - 1 && x <= MARGIN.left + plotWidth() + 1 && y >= MARGIN.top - 1 && y <= MARGIN.top + plotHeight + 1;
  /** About the event that is looked at, if it is in sight; else about the middle. */
  const zoom = (factor: number) => {
    const one = found();
    const seen = one !== null && inPlot(place(one).x, place(one).y);
    const [x, y] = seen ? [(place(one).x - MARGIN.left) / plotWidth(), 1 - (place(one).y - MARGIN.top) / plotHeight] : [0.5, 0.5];
    go(zoomed(props.view, factor, x, y));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const by = event.shiftKey ? 0.5 : 0.1;
    switch (event.key) {
      case "ArrowLeft": go(shifted(props.view, -by, 0)); break;
      case "ArrowRight": go(shifted(props.view, by, 0)); break;
      case "ArrowUp": go(shifted(props.view, 0, by)); break;
      case "ArrowDown": go(shifted(props.view, 0, -by)); break;
      case "+": case "=": zoom(0.7); break;
      case "-": zoom(1 / 0.7); break;
      case "0": case "Home": go(props.graph.whole); break;
      case "n": step(true); break;
      case "p": step(false); break;
      default: return;
    }
    event.preventDefault();
  };
  const shareOf = (time: number) => (time - props.graph.whole.from) / (props.graph.whole.to - props.graph.whole.from);
  const onSmall = (event: PointerEvent) => {
    if (event.buttons === 0 && event.type !== "pointerdown") return;
    const frame_ = small?.getBoundingClientRect();
    if (frame_ === undefined) return;
    const { whole } = props.graph;
    const time = whole.from + ((event.clientX - frame_.left) / frame_.width) * (whole.to - whole.from);
    const bytes = whole.low + (1 - (event.clientY - frame_.top) / frame_.height) * (whole.high - whole.low);
    const [across, up] = [(props.view.to - props.view.from) / 2, (props.view.high - props.view.low) / 2];
    go({ from: time - across, to: time + across, low: bytes - up, high: bytes + up });
  };
  const message = (): string => {
    const one = found();
    if (one !== null) {
      return `${NAMES[one.kind]}: bytes ${one.start.toLocaleString("en")} to ${one.end.toLocaleString("en")}, at ${one.time_s.toFixed(6)} s`;
    }
    const at = pointer();
    if (at === null) return "";
    const time = props.view.from + (at.x / plotWidth()) * (props.view.to - props.view.from);
    const bytes = props.view.low + (1 - at.y / plotHeight) * (props.view.high - props.view.low);
    return time < 0 || bytes < 0 ? "" : `${time.toFixed(4)} s, ${sizeText(bytes)}`;
  };

  return (
    <div class="sequence" ref={box}>
      <div
        class="sequence-plot"
        role="application"
        tabindex="0"
        aria-label="Time-sequence graph"
        aria-describedby={`${id}-keys ${id}-said`}
        onKeyDown={onKeyDown}
      >
        <canvas
          ref={canvas}
          aria-hidden="true"
          // It may prevent the page from scrolling, and has to say so.
          on:wheel={{ handleEvent: onWheel, passive: false }}
          onPointerDown={onPointerDown}
          onPointerMove={onPointerMove}
          onPointerUp={onPointerUp}
          onPointerCancel={onPointerUp}
          onPointerLeave={() => setPointer(null)}
          onDblClick={() => go(props.graph.whole)}
        />
        <Show when={pointer()}>
          {(at) => (
            <Show when={inPlot(at().x + MARGIN.left, at().y + MARGIN.top)}>
              <span class="sequence-hair across" style={{ top: `${String(at().y + MARGIN.top)}px`, left: `${String(MARGIN.left)}px`, width: `${String(plotWidth())}px` }} />
              <span class="sequence-hair up" style={{ left: `${String(at().x + MARGIN.left)}px`, top: `${String(MARGIN.top)}px`, height: `${String(plotHeight)}px` }} />
            </Show>
          )}
        </Show>
        <Show when={found()}>
          {(one) => (
            <Show when={inPlot(place(one()).x, place(one()).y)}>
              <span class="sequence-found" style={{ left: `${String(place(one()).x)}px`, top: `${String(place(one()).y)}px` }} />
            </Show>
          )}
        </Show>
      </div>
      <p class="sequence-said" id={`${id}-said`} role="status">{message() || "\u00a0"}</p>
      <div class="sequence-small" style={{ "margin-left": `${String(MARGIN.left)}px`, width: `${String(plotWidth())}px` }}>
        <canvas ref={small} aria-hidden="true" onPointerDown={onSmall} onPointerMove={onSmall} />
        <span
          class="sequence-window"
          style={{
            left: `${String(100 * shareOf(props.view.from))}%`,
            width: `${String(100 * (shareOf(props.view.to) - shareOf(props.view.from)))}%`,
            bottom: `${String((100 * (props.view.low - props.graph.whole.low)) / (props.graph.whole.high - props.graph.whole.low))}%`,
            height: `${String((100 * (props.view.high - props.view.low)) / (props.graph.whole.high - props.graph.whole.low))}%`,
          }}
        />
      </div>
      <div class="row sequence-tools">
        <button type="button" onClick={() => zoom(0.5)}>Zoom in</button>
        <button type="button" onClick={() => zoom(2)}>Zoom out</button>
        <button type="button" onClick={() => go(props.graph.whole)}>Reset</button>
        <button type="button" onClick={() => step(false)}>Previous event</button>
        <button type="button" onClick={() => step(true)}>Next event</button>
      </div>
      <p class="quiet sequence-keys" id={`${id}-keys`}>
        Wheel zooms (with Shift in time only, with Alt in bytes only), drag moves, double click shows all. Keys: arrows, + and −, 0 for all, n and p for the
        next and previous retransmission, drop or loss.
      </p>
    </div>
  );
}
