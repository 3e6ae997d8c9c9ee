import { describe, expect, it } from "vitest";

import type { FlowNow, Step } from "../../engine/protocol";
import { Flight } from "./flight";

const MSS = 1000;

function step(now_s: number, sent: number[], queue: { backlog?: number; dropped?: number; marked?: number } = {}): Step {
  return {
    now_s,
    end_s: 100,
    running: true,
    flows: sent.map((segments_sent) => ({ segments_sent }) as FlowNow),
    queues: [
      {
        name: "bottleneck", backlog_bytes: (queue.backlog ?? 0) * MSS, delay_s: null, arrived_packets: 0,
        dropped_packets: queue.dropped ?? 0, early_packets: 0, marked_packets: queue.marked ?? 0,
      },
    ],
    flow_series: [],
    queue_series: [],
  };
}

/** 1000 packets a second of one flow, of which `waiting` stay in the queue. */
function steady(waiting = 0, seconds = 1): Flight {
  const flight = new Flight(MSS);
  for (let ms = 0; ms <= seconds * 1000; ms += 10) flight.add(step(ms / 1000, [ms + waiting], { backlog: waiting }), 0);
  return flight;
}

describe("packets", () => {
  it("that wait are in the queue, the others are on the way, as many as there are", () => {
    const { each, queue, way } = steady(30).scene(0.05, 0.016);
    expect(each).toBe(1);
    expect(queue).toHaveLength(30);
    expect(Math.abs(way.filter(({ at }) => at <= 1).length - 50)).toBeLessThanOrEqual(1);
    expect(Math.abs(way.length - 100)).toBeLessThanOrEqual(1);
    expect(way.every(({ at }) => at >= 0 && at <= 2)).toBe(true);
  });

  it("are one dot for several where there are many", () => {
    const { each, way, queue } = steady(2000).scene(0.5, 0.016);
    expect(each).toBe(20);
    expect(way.length + queue.length).toBeLessThanOrEqual(260);
    expect(Math.abs(queue.length - 2000 / each)).toBeLessThanOrEqual(1);
  });

  it("move as they do, where an eye can follow", () => {
    const flight = steady(0);
    const before = flight.scene(1, 0.016).way.find(({ at }) => at > 0.2);
    flight.add(step(1.001, [1001]), 0);
    const { way, slowed } = flight.scene(1, 0.016);
    expect((way.find(({ id }) => id === before?.id)?.at ?? 0) - (before?.at ?? 0)).toBeCloseTo(0.001, 6);
    expect(slowed).toBeLessThan(20);
  });

  it("move slower than they do, where no eye could follow; and are as many", () => {
    const flight = steady(0);
    flight.scene(0.05, 0.016);
    const before = flight.scene(0.05, 0.016).way;
    flight.add(step(1.04, [1040]), 0);
    const { way, slowed } = flight.scene(0.05, 0.016);
    const moves = way.flatMap(({ id, at }) => before.filter((one) => one.id === id).map((one) => at - one.at));
    expect(Math.max(...moves)).toBeLessThan(0.1);
    expect(slowed).toBeGreaterThan(1);
    expect(Math.abs(way.length - before.length)).toBeLessThanOrEqual(2);
  });

  it("are of the flows that sent them, in their shares", () => {
    const flight = new Flight(MSS);
    for (let ms = 0; ms <= 1000; ms += 10) flight.add(step(ms / 1000, [0.75 * ms, 0.25 * ms]), 0);
    const { way } = flight.scene(0.1, 0.016);
    const first = way.filter(({ flow }) => flow === 0).length / way.length;
    expect(first).toBeGreaterThan(0.7);
    expect(first).toBeLessThan(0.8);
  });

  it("that are dropped or marked are counted once, and a dropped one is nowhere", () => {
    const flight = steady(0);
    flight.scene(0.05, 0.016);
    flight.add(step(1.01, [1020], { backlog: 5, dropped: 5, marked: 2 }), 0);
    const scene = flight.scene(0.05, 0.016);
    expect([scene.dropped, scene.marked]).toEqual([5, 2]);
    expect(scene.queue).toHaveLength(5);
    const after = flight.scene(0.05, 0.016);
    expect([after.dropped, after.marked]).toEqual([0, 0]);
  });

  it("are none before the first step", () => {
    expect(new Flight(MSS).scene(0.05, 0.016)).toMatchObject({ queue: [], way: [] });
  });
});
