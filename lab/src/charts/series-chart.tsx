// A chart of values over time. It draws what `ChartContent` says, with uPlot, and is part of a group with one zoom and crosshair.
/* eslint-disable solid/reactivity -- uPlot asks for the present values whenever it draws; the effects below say when it has to */

import "uplot/dist/uPlot.min.css";
import "./charts.css";

import { createEffect, createMemo, createSignal, createUniqueId, For, Index, on, onCleanup, onMount, Show } from "solid-js";
import uPlot from "uplot";

import { dragged, moved, scaled, type ChartGroup, type Zoom } from "./group";
import {
  aligned, cornersOf, farText, indexAt, mostOf, phaseName, phaseShort, phaseWeight, shown, tableOf, topOf, unitFor, type ChartContent, type Lane, type Line,
} from "./series";
import { colour, dashOf, seriesVariable, themeVersion } from "./theme";

export interface SeriesChartProps {
  content: ChartContent;
  group: ChartGroup;
  /** Of the plot, in CSS pixels. */
  height?: number;
  /** Whether the axis of times is labelled: only the last of a stack needs to be. */
  times?: boolean;
}

const LANE = 13;
const FONT = '11px system-ui, "DejaVu Sans", sans-serif';

/** What about lines needs a new canvas: everything but their values. */
function shapeOf(lines: readonly Line[]): string {
  return lines.map(({ label, series, dash, width }) => [label, series, dash, width].join(":")).join("|");
}

export function SeriesChart(props: SeriesChartProps) {
  const id = createUniqueId();
  const [cursor, setCursor] = createSignal<number | null>(null);
  const [message, setMessage] = createSignal("");
  const [table, setTable] = createSignal(false);
  const unit = createMemo(() => unitFor(props.content.kind, mostOf(props.content)), undefined, {
    equals: (a, b) => a.unit === b.unit,
  });
  const window_ = (): Zoom => props.group.zoom() ?? props.content.extent;
  const heading = () => (unit().unit === "" ? props.content.title : `${props.content.title}, ${unit().unit}`);

  let box: HTMLDivElement | undefined;
  let plot: uPlot | undefined;

  function build(): void {
    if (box === undefined) return;
    plot?.destroy();
    plot = new uPlot(options(), dataNow(), box);
    applyWindow();
  }

  function dataNow(): uPlot.AlignedData {
    const { times, columns } = aligned(props.content.lines);
    return [times, ...columns] as uPlot.AlignedData;
  }

  function applyWindow(): void {
    const [min, max] = window_();
    plot?.setScale("x", { min, max });
  }

  function options(): uPlot.Options {
    const axis = { font: FONT, stroke: () => colour("--quiet"), ticks: { stroke: () => colour("--line"), width: 1, size: 4 } };
    const grid = { stroke: () => colour("--line"), width: 0.5 };
    return {
      width: Math.max(box?.clientWidth ?? 0, 60),
      height: height(),
      legend: { show: false },
      padding: [6 + LANE * (props.content.lanes?.length ?? 0), 16, props.times === false ? 6 : 0, 0],
      cursor: {
        // The crosshair alone is shared: were a drag played on the peers, too, each would zoom what the one before had zoomed.
        sync: {
          key: props.group.key,
          scales: ["x", null],
          filters: { pub: (type) => type === "mousemove" || type === "mouseleave", sub: () => true },
        },
        drag: { x: true, y: false, setScale: false },
        y: false,
        points: { size: 6 },
        bind: {
          dblclick: () => () => {
            props.group.setZoom(null);
            return null;
          },
        },
      },
      scales: {
        x: { time: false },
        y: { range: (_, __, most) => [0, Math.max(topOf(most ?? 0, props.content.references ?? [], window_()), 1e-9) * 1.06] },
      },
      axes: [
        { ...axis, grid, show: props.times !== false, size: 24, gap: 2, values: (_, splits) => splits.map((at) => `${String(Number(at.toFixed(4)))} s`) },
        { ...axis, grid, size: 46, gap: 3, splits: ySplits, values: (_, splits) => splits.map((at) => axisValue(at)) },
      ],
      series: [
        {},
        ...props.content.lines.map(({ label, series, dash, width }): uPlot.Series => ({
          label,
          stroke: () => colour(seriesVariable(series)),
          width: width ?? 1.6,
          dash: [...dashOf(dash ?? series)],
          points: { show: false },
        })),
      ],
      hooks: {
        drawClear: [drawShade],
        draw: [drawReferences, drawMarks, drawLanes],
        setCursor: [(self) => setCursor(timeAt(self))],
        setSelect: [
          (self) => {
            const { left, width } = self.select;
            if (width < 4) return;
            const zoom: Zoom = [self.posToVal(left, "x"), self.posToVal(left + width, "x")];
            self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            props.group.setZoom(dragged(zoom, props.content.extent));
          },
        ],
      },
    };
  }

  /** Round numbers in the unit that is shown, not in the base unit. */
  function ySplits(self: uPlot): number[] {
    const most = (self.scales["y"]?.max ?? 1) / unit().scale;
    const wanted = Math.max(2, Math.floor(height() / 30));
    const raw = most / wanted;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= raw) ?? raw;
    const splits: number[] = [];
    for (let at = 0; at <= most * 1.0001; at += step) splits.push(at * unit().scale);
    return splits;
  }

  function axisValue(at: number): string {
    return String(Number((at / unit().scale).toPrecision(6)));
  }

  /** The time under the crosshair. */
  function timeAt(self: uPlot): number | null {
    return self.cursor.idx === null || self.cursor.idx === undefined ? null : (self.data[0][self.cursor.idx] ?? null);
  }

  function height(): number {
    return props.height ?? 150;
  }

  function clipped(self: uPlot, draw: (context: CanvasRenderingContext2D) => void): void {
    const { ctx: context, bbox } = self;
    context.save();
    context.beginPath();
    context.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    context.clip();
    draw(context);
    context.restore();
  }

  /** A text over lines: with an edge in the colour of the ground. */
  function labelled(context: CanvasRenderingContext2D, text: string, x: number, y: number): void {
    context.save();
    context.setLineDash([]);
    context.lineJoin = "round";
    context.lineWidth = 3 * devicePixelRatio;
    context.strokeStyle = colour("--ground");
    context.strokeText(text, x, y);
    context.fillText(text, x, y);
    context.restore();
  }

  function drawShade(self: uPlot): void {
    const lane = props.content.shade;
    if (lane === undefined) return;
    clipped(self, (context) => {
      context.fillStyle = colour(seriesVariable(lane.series));
      for (const span of lane.spans) {
        const weight = phaseWeight(span.name);
        if (weight === 0) continue;
        const left = self.valToPos(span.from, "x", true);
        context.globalAlpha = 0.16 * weight;
        context.fillRect(left, self.bbox.top, Math.max(self.valToPos(span.to, "x", true) - left, 1), self.bbox.height);
      }
    });
  }

  function drawLanes(self: uPlot): void {
    const lanes = props.content.lanes ?? [];
    const pixel = devicePixelRatio;
    const context = self.ctx;
    lanes.forEach((lane, row) => {
      const top = self.bbox.top - (lanes.length - row) * LANE * pixel - 2 * pixel;
      context.save();
      context.beginPath();
      context.rect(self.bbox.left, top, self.bbox.width, LANE * pixel);
      context.clip();
      context.font = `${String(9.5 * pixel)}px system-ui, "DejaVu Sans", sans-serif`;
      context.textAlign = "left";
      context.textBaseline = "middle";
      for (const span of lane.spans) {
        const left = Math.max(self.valToPos(span.from, "x", true), self.bbox.left);
        const right = Math.min(self.valToPos(span.to, "x", true), self.bbox.left + self.bbox.width);
        if (right < self.bbox.left || left > self.bbox.left + self.bbox.width) continue;
        context.fillStyle = colour(seriesVariable(lane.series));
        context.globalAlpha = 0.1 + 0.4 * phaseWeight(span.name);
        context.fillRect(left, top + pixel, Math.max(right - left, pixel), (LANE - 2) * pixel);
        context.globalAlpha = 1;
        // A thin edge tells neighbours apart that are shaded alike.
        context.fillRect(left, top + pixel, pixel, (LANE - 2) * pixel);
        const word = phaseShort(span.name);
        if (right - left > context.measureText(word).width + 8 * pixel) {
          context.fillStyle = colour("--text");
          context.fillText(word, left + 4 * pixel, top + (LANE / 2) * pixel);
        }
      }
      context.restore();
    });
  }

  function drawReferences(self: uPlot): void {
    const pixel = devicePixelRatio;
    clipped(self, (context) => {
      context.font = `${String(10 * pixel)}px system-ui, "DejaVu Sans", sans-serif`;
      context.textAlign = "right";
      context.textBaseline = "bottom";
      context.lineWidth = pixel;
      const edge = self.scales["y"]?.max ?? Infinity;
      let above = 0;
      for (const reference of props.content.references ?? []) {
        const { label, series } = reference;
        const corners = cornersOf(reference, ...window_());
        const value = corners.at(-1)?.[1] ?? reference.value;
        context.strokeStyle = context.fillStyle = colour(series === undefined ? "--quiet" : seriesVariable(series));
        context.setLineDash([4 * pixel, 4 * pixel]);
        context.beginPath();
        corners.forEach(([time, level], at) => {
          const place = [self.valToPos(time, "x", true), self.valToPos(level, "y", true)] as const;
          if (at === 0) context.moveTo(...place);
          else context.lineTo(...place);
        });
        context.stroke();
        const right = self.bbox.left + self.bbox.width - 4 * pixel;
        if (value > edge) {
          // Too far above the data to be drawn: said at the edge.
          context.textBaseline = "top";
          labelled(context, farText(props.content.kind, label, value), right, self.bbox.top + (2 + 13 * above) * pixel);
          above += 1;
          continue;
        }
        const y = self.valToPos(value, "y", true);
        const below = y - self.bbox.top < 13 * pixel;
        context.textBaseline = below ? "top" : "bottom";
        labelled(context, label, right, y + (below ? 2 : -1) * pixel);
      }
    });
  }

  function drawMarks(self: uPlot): void {
    const pixel = devicePixelRatio;
    clipped(self, (context) => {
      context.font = `${String(10 * pixel)}px system-ui, "DejaVu Sans", sans-serif`;
      context.textAlign = "left";
      context.textBaseline = "bottom";
      context.strokeStyle = context.fillStyle = colour("--text");
      context.lineWidth = pixel;
      let free = -Infinity;
      for (const { at, label } of props.content.marks ?? []) {
        const x = self.valToPos(at, "x", true);
        context.setLineDash([2 * pixel, 2 * pixel]);
        context.globalAlpha = 0.7;
        context.beginPath();
        context.moveTo(x, self.bbox.top);
        context.lineTo(x, self.bbox.top + self.bbox.height);
        context.stroke();
        // A slider that moves leaves many marks: only those with room are named.
        if (x < free) continue;
        context.globalAlpha = 1;
        labelled(context, label, x + 3 * pixel, self.bbox.top + self.bbox.height - 2 * pixel);
        free = x + context.measureText(label).width + 10 * pixel;
      }
    });
  }

  onMount(() => {
    build();
    if (box === undefined) return;
    const resized = new ResizeObserver(() => {
      if (box !== undefined && plot !== undefined && box.clientWidth > 0 && box.clientWidth !== plot.width) {
        plot.setSize({ width: box.clientWidth, height: height() });
      }
    });
    resized.observe(box);
    onCleanup(() => {
      resized.disconnect();
      plot?.destroy();
      plot = undefined;
    });
  });

  // A canvas is built again if what it consists of changes, drawn again if its values do.
  const shape = createMemo(
    () => `${shapeOf(props.content.lines)} ${String(props.content.lanes?.length ?? 0)} ${String(props.times)} ${String(height())}`,
  );
  createEffect(on(shape, build, { defer: true }));
  createEffect(
    on(
      () => [props.content, unit(), window_()],
      () => {
        if (plot === undefined || plot.series.length !== props.content.lines.length + 1) return;
        plot.batch(() => {
          plot?.setData(dataNow(), false);
          applyWindow();
        });
      },
      { defer: true },
    ),
  );
  createEffect(on(themeVersion, () => plot?.redraw(false, true), { defer: true }));

  /** A line's value under the crosshair, or its last one. */
  function valueOf(line: Line): number | null {
    const time = cursor();
    return line.y[time === null ? line.y.length - 1 : indexAt(line.x, time)] ?? null;
  }

  function onKey(event: KeyboardEvent): void {
    if (plot === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const [from, to] = window_();
    const { extent } = props.content;
    const centre = timeAt(plot) ?? (from + to) / 2;
    const move = (to_left: number) => {
      if (plot === undefined) return;
      plot.setCursor({ left: Math.min(Math.max(to_left, 0), plot.over.clientWidth - 1), top: 1 });
      const values = props.content.lines.flatMap((line) =>
        line.unlisted === true ? [] : [`${line.label} ${shown(valueOf(line), unit())}`],
      );
      setMessage(`${(timeAt(plot) ?? 0).toFixed(2)} s: ${values.join(", ")}`);
    };
    const step = plot.over.clientWidth / 50;
    const left = plot.cursor.left === undefined || plot.cursor.left < 0 ? plot.over.clientWidth / 2 : plot.cursor.left;
    switch (event.key) {
      case "ArrowLeft":
        if (event.shiftKey) props.group.setZoom(moved([from, to], extent, -0.2));
        else move(left - step);
        break;
      case "ArrowRight":
        if (event.shiftKey) props.group.setZoom(moved([from, to], extent, 0.2));
        else move(left + step);
        break;
      case "+":
      case "=":
        props.group.setZoom(scaled([from, to], extent, 0.5, centre));
        break;
      case "-":
        props.group.setZoom(scaled([from, to], extent, 2, centre));
        break;
      case "0":
      case "Escape":
        props.group.setZoom(null);
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  function onWheel(event: WheelEvent): void {
    // The wheel alone scrolls the page.
    if (plot === undefined || !(event.ctrlKey || event.metaKey || event.shiftKey)) return;
    event.preventDefault();
    const { extent } = props.content;
    const turned = event.deltaY === 0 ? event.deltaX : event.deltaY;
    if (event.shiftKey) props.group.setZoom(moved(window_(), extent, Math.sign(turned) * 0.1));
    else {
      const centre = plot.posToVal(event.clientX - plot.over.getBoundingClientRect().left, "x");
      props.group.setZoom(scaled(window_(), extent, turned < 0 ? 0.8 : 1.25, centre));
    }
  }

  return (
    <figure class="chart" aria-label={heading()}>
      <figcaption>
        <span class="chart-title">{heading()}</span>
        <ul class="legend">
          <Index each={props.content.lines}>
            {(line) => (
              <Show when={line().unlisted !== true}>
                <li>
                  <Swatch series={line().series} dash={line().dash ?? line().series} width={line().width ?? 1.6} />
                  <span>{line().label}</span>
                  <span class="value">{shown(valueOf(line()), unit())}</span>
                </li>
              </Show>
            )}
          </Index>
        </ul>
        <Show when={props.group.zoom() !== null}>
          <button type="button" class="plain" onClick={() => props.group.setZoom(null)}>Reset zoom</button>
        </Show>
        <button type="button" class="plain last" aria-expanded={table()} aria-controls={table() ? `${id}-table` : undefined}
          aria-label={`${heading()} as a table`} onClick={() => setTable(!table())}>Table</button>
      </figcaption>
      <Show when={props.content.note}><p class="chart-note quiet">{props.content.note}</p></Show>
      <div
        ref={box}
        class="plot"
        tabindex="0"
        role="group"
        aria-roledescription="chart"
        aria-label={heading()}
        aria-describedby={`${id}-help`}
        onKeyDown={onKey}
        on:wheel={{ handleEvent: onWheel, passive: false }}
      />
      <p id={`${id}-help`} class="sr">
        Left and right move the crosshair, plus and minus zoom, shift with left and right moves the zoom, 0 resets it.
      </p>
      <p class="sr" aria-live="polite">{message()}</p>
      <Show when={table()}>
        <div class="scroll chart-table" id={`${id}-table`} tabindex="0" role="region" aria-label={`${heading()}: table`}>
          <table>
            <thead>
              <tr>
                <th scope="col">Time, s</th>
                <For each={props.content.lines}>{(line) => <th scope="col">{line.label}</th>}</For>
              </tr>
            </thead>
            <tbody>
              <For each={tableOf(props.content, ...window_())}>
                {(row) => (
                  <tr>
                    <th scope="row">{row.time.toFixed(2)}</th>
                    <For each={row.values}>{(value) => <td>{shown(value, unit())}</td>}</For>
                  </tr>
                )}
              </For>
            </tbody>
          </table>
          <For each={[...(props.content.lanes ?? [])]}>{(lane) => <Phases lane={lane} window={window_()} />}</For>
        </div>
      </Show>
    </figure>
  );
}

/** A short line as a series is drawn: for legends and tables. */
export function Swatch(props: { series: number; dash?: number; width?: number }) {
  return (
    <svg class="swatch" width="26" height="8" aria-hidden="true">
      <line x1="0" y1="4" x2="26" y2="4" stroke={`var(${seriesVariable(props.series)})`} stroke-width={Math.max(props.width ?? 2, 1.5)}
        stroke-dasharray={dashOf(props.dash ?? props.series).join(" ")} />
    </svg>
  );
}

/** The phases of a flow, to be read out. */
function Phases(props: { lane: Lane; window: Zoom }) {
  const seen = () => props.lane.spans.filter(({ from, to }) => to >= props.window[0] && from <= props.window[1]).slice(0, 50);
  return (
    <p>
      Phases of {props.lane.label}: {seen().map(({ name, from }) => `${phaseName(name)} from ${from.toFixed(2)} s`).join(", ")}.
    </p>
  );
}

