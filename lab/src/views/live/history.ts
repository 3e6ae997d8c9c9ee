// What a live run has shown so far: its series, kept as they come.

import { rateOver } from "../../charts/rates";
import { indexAt } from "../../charts/series";
import type { Table } from "../../engine/protocol";

/** Columns that grow at their end. */
export class Series {
  #columns = new Map<string, Float64Array>();
  #rows = 0;

  constructor(private readonly names: readonly string[]) {
    for (const name of names) this.#columns.set(name, new Float64Array(256));
  }

  get rows(): number {
    return this.#rows;
  }

  add(table: Table): void {
    if (table.rows === 0) return;
    const needed = this.#rows + table.rows;
    for (const name of this.names) {
      let column = this.#columns.get(name) ?? new Float64Array(256);
      if (needed > column.length) {
        const larger = new Float64Array(Math.max(needed, column.length * 2));
        larger.set(column);
        column = larger;
        this.#columns.set(name, column);
      }
      const from = table.columns[name];
      if (from === undefined) column.fill(NaN, this.#rows, needed);
      else column.set(from.subarray(0, table.rows), this.#rows);
    }
    this.#rows = needed;
  }

  column(name: string, from = 0): Float64Array {
    return (this.#columns.get(name) ?? new Float64Array()).subarray(from, this.#rows);
  }

  /** The first row that is needed to show what is from `from_s` on: the one before it, so that lines reach the edge. */
  rowFor(from_s: number): number {
    return Math.max(indexAt(this.column("time_s"), from_s), 0);
  }

  /** The rate of a counter from a row on; it is over `window_s`, which may begin before that row. */
  rate(name: string, window_s: number, from: number): Float64Array {
    const times = this.column("time_s");
    const first = Math.max(indexAt(times, (times[from] ?? 0) - window_s), 0);
    return rateOver(times.subarray(first), this.column(name, first), window_s).subarray(from - first);
  }
}

export const FLOW_COLUMNS = ["time_s", "cwnd", "inflight", "srtt_s", "delivered_bytes", "phase"] as const;
export const QUEUE_COLUMNS = ["time_s", "queue_bytes", "queue_delay_s", "dropped_packets", "marked_packets"] as const;
