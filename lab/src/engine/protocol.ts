// What the page asks the engine, and what the engine answers.
//
// The engine is the simulator itself, compiled to WebAssembly. It runs in workers; `Engine` is what a view holds. Times are seconds,
// rates bits per second and sizes bytes, unless a name carries another unit. A value that is not there is NaN in a column and null
// elsewhere.

/** A table by columns. All columns have `rows` values. */
export interface Table {
  rows: number;
  columns: Record<string, Float64Array>;
}

/** A scenario as somebody writes it. */
export interface Document {
  text: string;
  format: "toml" | "json";
}

/** A mistake in a scenario: the text that the command line prints, and its parts. */
export interface Mistake {
  message: string;
  /** The key, as `path.rate`; null if the mistake is not in one. */
  field: string | null;
  given: string | null;
  expected: string | null;
  fix: string | null;
}

/** Thrown by everything that takes a document. */
export class MistakeError extends Error {
  constructor(readonly mistake: Mistake) {
    super(mistake.message);
    this.name = "MistakeError";
  }
}

/** A parameter of a controller or a setting of a queue. */
export interface Parameter {
  name: string;
  default: string;
  summary: string;
}

export interface Named {
  name: string;
  summary: string;
  source: string;
  parameters: Parameter[];
}

/** What the engine knows. */
export interface Catalogue {
  version: string;
  controllers: Named[];
  queues: Named[];
  /** The scenarios that the package ships, whose files need nothing else. */
  scenarios: { name: string; text: string }[];
  /** The names of phases and of recovery states, by the numbers in the columns `phase` and `state`. */
  phases: string[];
  states: string[];
}

/** What is known of a path before a run. */
export interface PathFacts {
  rate_bps: number | null;
  rtt_s: number | null;
  bdp_bytes: number | null;
  buffer_bytes: number | null;
}

/** One run that a document asks for: a document may compare several. */
export interface Alternative {
  /** Empty if there is only one. */
  name: string;
  duration_s: number;
  mss_bytes: number;
  flows: { label: string; controller: string; start_s: number }[];
  queues: string[];
  facts: PathFacts;
}

export interface Resolved {
  /** The document as plain JSON, its keys in their order. */
  document: unknown;
  alternatives: Alternative[];
  /** What to know about it, such as settings without effect. */
  notes: string[];
}

export interface RunRequest {
  document: Document;
  /** Which of the document's alternatives; 0 unless said. */
  alternative?: number;
  seed: number;
}

/**
 * Columns of a flow's series: `time_s`, `cwnd` (segments), `ssthresh` (segments), `pacing_bps`, `inflight` (segments), `srtt_s`,
 * `min_rtt_s`, `delivery_bps`, `bandwidth_bps`, `delivered_bytes`, `goodput_bps` (since the sample before), `retransmits`, `phase`,
 * `state`. Columns of a queue's: `time_s`, `queue_bytes`, `queue_delay_s`, `dropped_packets`, `early_packets`, `marked_packets`; the
 * counts are since the start.
 */
export interface RunResult {
  /** The summary as the command line writes it, to the last byte. */
  summary: string;
  flows: Table[];
  queues: Table[];
  /** How long the engine computed, in milliseconds, and how many data packets were sent. */
  took_ms: number;
  packets: number;
}

/** A flow as it is at an instant. */
export interface FlowNow {
  label: string;
  controller: string;
  connected: boolean;
  phase: string | null;
  state: string | null;
  cwnd: number | null;
  ssthresh: number | null;
  pacing_bps: number | null;
  inflight: number;
  srtt_s: number | null;
  min_rtt_s: number | null;
  delivery_bps: number | null;
  bandwidth_bps: number | null;
  delivered_bytes: number;
  segments_sent: number;
  lost: number;
  retransmits: number;
  timeouts: number;
  ended_s: number | null;
}

export interface QueueNow {
  name: string;
  backlog_bytes: number;
  delay_s: number | null;
  arrived_packets: number;
  dropped_packets: number;
  early_packets: number;
  marked_packets: number;
}

/** What a step of a live run gives: the state at its end, and the samples that it added to the series. */
export interface Step {
  now_s: number;
  end_s: number;
  running: boolean;
  flows: FlowNow[];
  queues: QueueNow[];
  flow_series: Table[];
  queue_series: Table[];
}

/** A change of the path while it runs, in words with units, as `fullpipe.Simulation.change` takes them. */
export interface Change {
  rate?: string;
  rtt?: string;
  delay?: string;
  loss?: string;
  buffer?: string;
  /** The element, `forward[2]` or a queue's name; the path's own unless said. */
  element?: string;
}

/** A run that goes on step by step. */
export interface Live {
  advance(until_s: number): Promise<Step>;
  change(change: Change): Promise<void>;
  /** Ends it: as a whole run, and the scenario with all its changes as JSON. */
  finish(): Promise<RunResult & { changed: string }>;
  close(): void;
}

/**
 * What happened to a flow's packets. `sent`: `time_s`, `start_bytes`, `end_bytes`, `again` (0 first, 1 lost, 2 timed out, 3 probe),
 * `dropped` (1 if the path dropped it). `acks`: `time_s`, `ack_bytes`, `edge_bytes`. `sacks`: `time_s`, `start_bytes`, `end_bytes`.
 * `lost`: `time_s`, `start_bytes`, `end_bytes`. `truncated` says that the limit of rows was reached, and at which time.
 */
export interface Packets {
  sent: Table;
  acks: Table;
  sacks: Table;
  lost: Table;
  truncated_s: number | null;
}

/** A cell of a decision map: one path, some controllers, some seeds. */
export interface ScoreRequest {
  documents: Document[];
  seeds: number[];
}

/** The engine in one worker. Requests are carried out in order. */
export interface Engine {
  catalogue(): Promise<Catalogue>;
  resolve(document: Document): Promise<Resolved>;
  run(request: RunRequest): Promise<RunResult>;
  /** Only the summaries of many runs: a row a document, a column a seed. */
  summaries(request: ScoreRequest): Promise<string[][]>;
  open(request: RunRequest): Promise<Live>;
  packets(request: RunRequest & { flow: number; most_rows?: number }): Promise<Packets>;
  /** A log of the run in qlog, in the current form or in the one that qvis reads. */
  qlog(request: RunRequest & { form: "current" | "qvis" }): Promise<string>;
  /** Ends the worker; what is under way is rejected. */
  close(): void;
}
