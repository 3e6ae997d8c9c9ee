// The engine itself, without a worker: makes an instance of the module, asks it, and reads its answers.
//
// `crates/wasm/src/abi.rs` is the other side. Calls are synchronous. A worker holds one of these; so can node.

import {
  type Catalogue,
  type Change,
  type Document,
  type FlowNow,
  type Mistake,
  MistakeError,
  type Packets,
  type QueueNow,
  type Resolved,
  type RunRequest,
  type RunResult,
  type ScoreRequest,
  type Step,
  type Table,
} from "./protocol";

/** What the module offers. A pointer is a number of bytes. */
interface Exports {
  memory: WebAssembly.Memory;
  fullpipe_request(bytes: number): number;
  fullpipe_call(): number;
  fullpipe_forget(): void;
  fullpipe_panic(): number;
}

/** Where a table is among the columns of an answer. */
interface TableAt {
  rows: number;
  columns: [name: string, first: number][];
}

interface RunAt {
  summary: string;
  flows: TableAt[];
  queues: TableAt[];
  packets: number;
}

interface StepAt {
  now_s: number;
  end_s: number;
  running: boolean;
  flows: FlowNow[];
  queues: QueueNow[];
  flow_series: TableAt[];
  queue_series: TableAt[];
}

interface PacketsAt {
  sent: TableAt;
  acks: TableAt;
  sacks: TableAt;
  lost: TableAt;
  truncated_s: number | null;
}

/** An answer: a value, the columns of its tables, and a text. */
interface Answer {
  value: unknown;
  columns: Float64Array;
  text: string;
}

type Envelope = { ok: unknown } | { mistake: Mistake } | { failure: string };

/** Behind so many bytes, an idle instance is replaced: the memory of one never shrinks. */
const MUCH_MEMORY = 1 << 28;
/** The module may have 2^30 bytes (`crates/wasm/build.rs`). A failure that leaves less than this has run out of them. */
const NEARLY_ALL_MEMORY = 3 * (1 << 28);

/** The engine. Not to be shared between threads. */
export class Wasm {
  #instance: Exports | undefined;
  /** The live runs: our number, and the instance's. */
  readonly #runs = new Map<number, number>();
  #opened = 0;

  constructor(readonly module: WebAssembly.Module) {}

  catalogue(): Catalogue {
    return this.#ask({ method: "catalogue" }).value as Catalogue;
  }

  resolve(document: Document): Resolved {
    return this.#ask({ method: "resolve", document }).value as Resolved;
  }

  run(request: RunRequest): RunResult {
    const from = performance.now();
    const { value, columns } = this.#ask({ method: "run", ...request });
    return runOf(value as RunAt, columns, performance.now() - from);
  }

  summaries(request: ScoreRequest): string[][] {
    return this.#ask({ method: "summaries", ...request }).value as string[][];
  }

  packets(request: RunRequest & { flow: number; most_rows?: number }): Packets {
    const { value, columns } = this.#ask({ method: "packets", ...request });
    const { sent, acks, sacks, lost, truncated_s } = value as PacketsAt;
    const table = tablesOf(columns);
    return { sent: table(sent), acks: table(acks), sacks: table(sacks), lost: table(lost), truncated_s };
  }

  qlog(request: RunRequest & { form: "current" | "qvis" }): string {
    return this.#ask({ method: "qlog", ...request }).text;
  }

  /** Begins a live run, and returns its number. */
  open(request: RunRequest): number {
    const { run } = this.#ask({ method: "open", ...request }).value as { run: number };
    this.#opened += 1;
    this.#runs.set(this.#opened, run);
    return this.#opened;
  }

  advance(live: number, until_s: number): Step {
    const { value, columns } = this.#ask({ method: "advance", run: this.#run(live), until_s });
    const { flow_series, queue_series, ...now } = value as StepAt;
    const table = tablesOf(columns);
    return { ...now, flow_series: flow_series.map(table), queue_series: queue_series.map(table) };
  }

  change(live: number, change: Change): void {
    this.#ask({ method: "change", run: this.#run(live), change });
  }

  finish(live: number): RunResult & { changed: string } {
    const from = performance.now();
    const { value, columns } = this.#ask({ method: "finish", run: this.#run(live) });
    this.#runs.delete(live);
    const { changed, ...run } = value as RunAt & { changed: string };
    return { ...runOf(run, columns, performance.now() - from), changed };
  }

  close(live: number): void {
    const run = this.#runs.get(live);
    this.#runs.delete(live);
    if (run !== undefined) this.#ask({ method: "close", run });
  }

  #run(live: number): number {
    const run = this.#runs.get(live);
    if (run === undefined) throw new Error("this live run is over: it was finished, closed, or lost when the engine failed");
    return run;
  }

  #ask(request: object): Answer {
    const instance = this.#begin();
    let answer: { json: string; columns: Float64Array; text: string };
    try {
      const wording = new TextEncoder().encode(JSON.stringify(request));
      // The address first: to make room may replace the buffer of the memory.
      const room = instance.fullpipe_request(wording.length);
      new Uint8Array(instance.memory.buffer, room, wording.length).set(wording);
      answer = read(instance, instance.fullpipe_call());
      instance.fullpipe_forget();
    } catch (error) {
      // A trap: nothing of this instance means anything any more, and the next request gets a new one.
      this.#instance = undefined;
      this.#runs.clear();
      throw failure(instance, error);
    }
    if (this.#runs.size === 0 && instance.memory.buffer.byteLength > MUCH_MEMORY) this.#instance = undefined;
    const envelope = JSON.parse(answer.json) as Envelope;
    if ("mistake" in envelope) throw new MistakeError(envelope.mistake);
    if ("failure" in envelope) throw new Error(envelope.failure);
    return { value: envelope.ok, columns: answer.columns, text: answer.text };
  }

  #begin(): Exports {
    // The module imports nothing.
    this.#instance ??= new WebAssembly.Instance(this.module, {}).exports as unknown as Exports;
    return this.#instance;
  }
}

/** The parts of an answer, copied out of the module's memory once. */
function read({ memory }: Exports, at: number): { json: string; columns: Float64Array; text: string } {
  const word = new DataView(memory.buffer, at, 24);
  const part = (index: number) => word.getUint32(4 * index, true);
  const text = (first: number) => new TextDecoder().decode(new Uint8Array(memory.buffer, part(first), part(first + 1)));
  return { json: text(0), columns: new Float64Array(memory.buffer, part(2), part(3)).slice(), text: text(4) };
}

function failure(instance: Exports, error: unknown): Error {
  let wording = "";
  try {
    wording = read(instance, instance.fullpipe_panic()).json;
  } catch {
    // It cannot even say why.
  }
  if (wording === "" && instance.memory.buffer.byteLength >= NEARLY_ALL_MEMORY) {
    const expected = "a run that fits into 1 GiB";
    const fix = "choose a lower rate, a smaller buffer, a shorter duration or fewer flows, or run it with `fullpipe run`";
    const message = `the run needs more memory than a browser gives it; expected ${expected}; ${fix}`;
    return new MistakeError({ message, field: null, given: null, expected, fix });
  }
  return new Error(`the engine failed: ${wording === "" ? String(error) : wording}`, { cause: error });
}

/** Makes tables over these columns. They share one buffer, so that it can be handed to another thread as one. */
function tablesOf(columns: Float64Array): (at: TableAt) => Table {
  return ({ rows, columns: places }) => ({
    rows,
    columns: Object.fromEntries(places.map(([name, first]) => [name, columns.subarray(first, first + rows)])),
  });
}

function runOf({ summary, flows, queues, packets }: RunAt, columns: Float64Array, took_ms: number): RunResult {
  const table = tablesOf(columns);
  return { summary, flows: flows.map(table), queues: queues.map(table), took_ms, packets };
}
