// The path, drawn: windows of the senders, the queue, the link, the packets on their way and the ACKs on theirs.

import { createEffect, on, onCleanup, onMount } from "solid-js";

import { colour, dashOf, seriesVariable, themeVersion } from "../../charts/theme";
import type { Step } from "../../engine/protocol";
import { rateText, sizeText, timeText } from "../../ui/quantity";
import type { Dot, Scene } from "./flight";

/** What is known of the path as it is now. */
export interface PathNow {
  rate_bps: number | null;
  delay_s: number;
  buffer_bytes: number | null;
  mss_bytes: number;
  /** The index of the bottleneck's queue. */
  queue: number;
}

export interface Picture {
  step: Step;
  /** Of the flows. */
  names: readonly string[];
  scene: Scene;
  path: PathNow;
  /** Time of the page, for what falls. */
  now_ms: number;
}

const FONT = 'system-ui, "DejaVu Sans", sans-serif';
/** How many flows have a row of their own. */
export const MOST_ROWS = 8;
const FALL_MS = 700;

interface Falling {
  since_ms: number;
  kind: "drop" | "mark";
  aside: number;
}

/** The canvas; `ref` gets what draws a picture on it. */
export function PathCanvas(props: { draw: (paint: (picture: Picture) => void) => void; label: string }) {
  let canvas: HTMLCanvasElement | undefined;
  let last: Picture | undefined;
  let falling: Falling[] = [];
  let most_window = 1;

  function paint(picture: Picture): void {
    last = picture;
    const { scene } = picture;
    const some = (count: number, kind: Falling["kind"]) => {
      for (let at = 0; at < Math.min(count, 5); at += 1) {
        falling.push({ since_ms: picture.now_ms, kind, aside: (falling.length * 0.618) % 1 });
      }
    };
    some(scene.dropped, "drop");
    some(scene.marked, "mark");
    falling = falling.filter(({ since_ms }) => picture.now_ms - since_ms < FALL_MS).slice(-40);
    render();
  }

  function render(): void {
    const context = canvas?.getContext("2d");
    if (canvas === undefined || !context) return;
    const ratio = devicePixelRatio;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    if (last !== undefined) drawPath(context, width, height, last);
  }

  function drawPath(context: CanvasRenderingContext2D, width: number, height: number, picture: Picture): void {
    const { step, scene, path } = picture;
    const narrow = width < 620;
    const small = `11px ${FONT}`;
    const queue_left = narrow ? 4 : Math.max(width * 0.2, 150);
    const queue_right = narrow ? width * 0.36 : width * 0.42;
    const pipe_left = queue_right + 12;
    const pipe_right = width - (narrow ? 14 : 26);
    const top = 26;
    const pipe_height = Math.max(height - 94, 40);
    const bottom = top + pipe_height;
    const ack_top = bottom + 44;
    const text = (words: string, x: number, y: number, align: CanvasTextAlign = "left", tone = "--quiet") => {
      context.font = small;
      context.textAlign = align;
      context.textBaseline = "alphabetic";
      context.fillStyle = colour(tone);
      context.fillText(words, x, y);
    };

    if (!narrow) drawWindows(context, picture, queue_left - 24, top, ack_top);

    // The queue: its width is the buffer, its content what waits.
    const state = step.queues[path.queue];
    const backlog = state?.backlog_bytes ?? 0;
    const packets = Math.max((path.buffer_bytes ?? Math.max(backlog, path.mss_bytes * 10)) / path.mss_bytes, 1);
    context.strokeStyle = colour("--line");
    context.lineWidth = 1;
    context.fillStyle = colour("--raised");
    context.fillRect(queue_left, top, queue_right - queue_left, pipe_height);
    context.strokeRect(queue_left + 0.5, top + 0.5, queue_right - queue_left - 1, pipe_height - 1);
    // The buffer's end, where packets are dropped.
    context.fillStyle = colour("--wrong");
    context.fillRect(queue_left, top, 3, pipe_height);
    const share = Math.min(backlog / path.mss_bytes / packets, 1);
    const length = (queue_right - queue_left - 6) * share;
    context.globalAlpha = 0.14;
    context.fillStyle = colour("--text");
    context.fillRect(queue_right - 2 - length, top + 1, length, pipe_height - 2);
    context.globalAlpha = 1;
    const rows = Math.max(Math.floor((pipe_height - 6) / 11), 1);
    // As many dots as there are fill as much of the width as the bytes do.
    const dots = Math.max(scene.queue.length, 1);
    for (const dot of scene.queue) {
      const along = ((dot.at + 0.5) / dots) * length;
      mark(context, dot.flow, queue_right - 4 - Math.min(along, length), top + 8 + (((dot.id % rows) + rows) % rows) * 11, 3.1);
    }
    const delay = state?.delay_s === null || state?.delay_s === undefined ? "" : `, ${timeText(state.delay_s)}`;
    text(narrow ? "Queue" : "Queue, to scale of the buffer", queue_left, top - 9);
    text(`${sizeText(backlog)}${path.buffer_bytes === null ? "" : ` of ${sizeText(path.buffer_bytes)}`}${delay}`, queue_left, bottom + 15, "left", "--text");
    const lost = `${String(state?.dropped_packets ?? 0)} dropped by the queue${(state?.marked_packets ?? 0) > 0 ? `, ${String(state?.marked_packets)} marked` : ""}`;
    text(lost, queue_left, bottom + 30);

    // The link.
    context.fillStyle = colour("--text");
    context.fillRect(queue_right + 2, top - 4, 5, pipe_height + 8);
    text(path.rate_bps === null ? "link" : rateText(path.rate_bps), queue_right + 5, top - 9, narrow ? "left" : "center", "--text");

    // The way to the receiver, and back.
    context.strokeStyle = colour("--line");
    for (const y of [top, bottom]) {
      context.beginPath();
      context.moveTo(pipe_left, y + 0.5);
      context.lineTo(pipe_right, y + 0.5);
      context.stroke();
    }
    context.setLineDash([2, 4]);
    context.beginPath();
    context.moveTo(pipe_right, ack_top + 0.5);
    context.lineTo(narrow ? 4 : 10, ack_top + 0.5);
    context.stroke();
    context.setLineDash([]);
    const lanes = Math.max(Math.floor((pipe_height - 6) / 11), 1);
    for (const dot of scene.way) {
      if (dot.at <= 1) {
        const x = pipe_left + dot.at * (pipe_right - pipe_left);
        mark(context, dot.flow, x, top + 8 + laneOf(dot, lanes) * 11, 3.1);
      } else if (dot.id % 2 === 0) {
        // An ACK for two packets, as receivers usually send them.
        const x = pipe_right - (dot.at - 1) * (pipe_right - (narrow ? 4 : 10));
        context.fillStyle = colour(seriesVariable(dot.flow));
        context.fillRect(x - 0.9, ack_top - 4, 1.8, 8);
      }
    }
    context.fillStyle = colour("--quiet");
    context.fillRect(pipe_right + 3, top - 4, 4, ack_top - top + 10);
    if (!narrow) text("Receiver", pipe_right + 7, top - 9, "right");
    const on_way = scene.way.filter(({ at }) => at <= 1).length * scene.each;
    const fit = path.rate_bps === null ? "" : ` of ${String(Math.round((path.rate_bps * path.delay_s) / 8 / path.mss_bytes))} that fit`;
    text(narrow ? "" : `On the way, ${timeText(path.delay_s)}`, (pipe_left + pipe_right) / 2, top - 9, "center");
    text(`about ${String(on_way)} packets${narrow ? "" : fit}`, (pipe_left + pipe_right) / 2, bottom + 15, "center", "--text");
    const scale = scene.each === 1 ? "1 dot is 1 packet" : `1 dot is ${String(scene.each)} packets`;
    const slow = scene.slowed > 1.5 ? `, drawn ${scene.slowed < 10 ? scene.slowed.toFixed(1) : String(Math.round(scene.slowed))}× slower` : "";
    text(`${scale}${slow}`, pipe_right, bottom + 30, "right");
    text("ACKs", narrow ? 4 : 10, ack_top + 17);

    for (const { since_ms, kind, aside } of falling) {
      const age = (picture.now_ms - since_ms) / FALL_MS;
      const x = queue_left + 4 + aside * 26 + (kind === "mark" ? 30 : 0);
      const y = bottom - 6 + age * age * 46;
      context.globalAlpha = 1 - age;
      context.strokeStyle = colour(kind === "drop" ? "--wrong" : "--text");
      context.lineWidth = 1.8;
      context.beginPath();
      if (kind === "drop") {
        context.moveTo(x - 4, y - 4);
        context.lineTo(x + 4, y + 4);
        context.moveTo(x + 4, y - 4);
        context.lineTo(x - 4, y + 4);
      } else {
        context.moveTo(x, y - 5);
        context.lineTo(x + 5, y);
        context.lineTo(x, y + 5);
        context.lineTo(x - 5, y);
        context.closePath();
      }
      context.stroke();
      context.globalAlpha = 1;
    }
  }

  /** A bar for each flow: the window, and as much of it as is in flight. */
  function drawWindows(context: CanvasRenderingContext2D, { step, names }: Picture, right: number, top: number, bottom: number): void {
    const flows = step.flows.slice(0, MOST_ROWS);
    const row = Math.min((bottom - top - 14) / Math.max(flows.length, 1), 34);
    const now = Math.max(...flows.map(({ cwnd, inflight }) => Math.max(cwnd ?? 0, inflight)), 1);
    // The scale follows a window that grows at once, and one that shrinks slowly, so that bars can be compared over time.
    most_window = Math.max(now, most_window * 0.995, 10);
    flows.forEach((flow, index) => {
      const y = top + index * row;
      const bar = row - 17 > 9 ? 9 : Math.max(row - 13, 3);
      context.font = `11px ${FONT}`;
      context.textAlign = "left";
      context.textBaseline = "alphabetic";
      context.fillStyle = colour("--text");
      if (row >= 16) context.fillText(`${names[index] ?? flow.label} ${String(flow.inflight)}/${String(flow.cwnd ?? "–")}`, 8, y + 8, right - 8);
      const long = (count: number) => (right - 8) * Math.min(count / most_window, 1);
      context.strokeStyle = context.fillStyle = colour(seriesVariable(index));
      context.lineWidth = 1;
      context.setLineDash([...dashOf(index)]);
      context.strokeRect(8.5, y + row - bar - 6.5, Math.max(long(flow.cwnd ?? 0), 2), bar);
      context.setLineDash([]);
      context.globalAlpha = 0.55;
      context.fillRect(8.5, y + row - bar - 6.5, long(flow.inflight), bar);
      context.globalAlpha = 1;
    });
    context.fillStyle = colour("--quiet");
    context.font = `11px ${FONT}`;
    context.fillText("In flight / window", 8, top - 9);
  }

  createEffect(on(themeVersion, render, { defer: true }));
  onMount(() => {
    props.draw(paint);
    if (canvas === undefined) return;
    const resized = new ResizeObserver(render);
    resized.observe(canvas);
    onCleanup(() => resized.disconnect());
  });

  return <canvas ref={canvas} class="path" role="img" aria-label={props.label} />;
}

/** A packet: each flow has a shape, too. */
function mark(context: CanvasRenderingContext2D, flow: number, x: number, y: number, size: number): void {
  context.fillStyle = colour(seriesVariable(flow));
  context.beginPath();
  switch (flow % 4) {
    case 0:
      context.arc(x, y, size, 0, 7);
      break;
    case 1:
      context.rect(x - size * 0.9, y - size * 0.9, size * 1.8, size * 1.8);
      break;
    case 2:
      context.moveTo(x - size, y + size);
      context.lineTo(x + size, y + size);
      context.lineTo(x, y - size);
      break;
    default:
      context.moveTo(x, y - size * 1.3);
      context.lineTo(x + size * 1.3, y);
      context.lineTo(x, y + size * 1.3);
      context.lineTo(x - size * 1.3, y);
  }
  context.fill();
}

/** Neighbours in time are in different rows: the golden ratio's multiples are spread evenly. */
function laneOf(dot: Dot, lanes: number): number {
  const share = (dot.id * 0.618_033_988_75) % 1;
  return Math.floor((share < 0 ? share + 1 : share) * lanes);
}
