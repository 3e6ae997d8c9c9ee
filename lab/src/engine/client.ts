// Engines for views: each in a worker of its own, and pools of them.

import {
  type Catalogue,
  type Document,
  type Engine,
  type Live,
  MistakeError,
  type Packets,
  type Resolved,
  type RunRequest,
  type RunResult,
  type ScoreRequest,
  type Step,
} from "./protocol";
import type { Method, Question, Reply } from "./serve";

/** As much of a worker as is needed. */
export interface WorkerLike {
  onmessage: ((event: { data: Reply }) => void) | null;
  onerror: ((event: { message?: string }) => void) | null;
  postMessage(question: Question): void;
  terminate(): void;
}

/** How an engine gets its worker and its module; tests have others. */
export interface Source {
  worker(): WorkerLike;
  module(): Promise<WebAssembly.Module>;
}

let compiled: Promise<WebAssembly.Module> | undefined;

/** Workers of the browser, and the module beside this script, compiled once for all of them. */
const BROWSER: Source = {
  worker: () => new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "engine" }) as WorkerLike,
  module: () => {
    compiled ??= compile(new URL("./engine.wasm", import.meta.url)).catch((error: unknown) => {
      // The next one may try again.
      compiled = undefined;
      throw error;
    });
    return compiled;
  },
};

async function compile(address: URL): Promise<WebAssembly.Module> {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`the engine could not be fetched: ${String(response.status)} ${response.statusText}`);
  // A server that does not know the type of the file: compiled when all of it is there.
  if (response.headers.get("content-type") !== "application/wasm") return WebAssembly.compile(await response.arrayBuffer());
  return WebAssembly.compileStreaming(response);
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** A worker, and the questions that it has not answered. */
class Line {
  readonly #worker: WorkerLike;
  readonly #ready: Promise<void>;
  readonly #waiting = new Map<number, Waiting>();
  #asked = 0;
  #closed: Error | undefined;

  constructor(source: Source) {
    this.#worker = source.worker();
    this.#worker.onmessage = ({ data }) => {
      this.#take(data);
    };
    this.#worker.onerror = ({ message }) => {
      this.#end(new Error(`the engine's worker failed: ${message ?? "it could not be started"}`));
    };
    this.#ready = source.module().then((module) => {
      this.#worker.postMessage({ module });
    });
    // Whoever asks is told.
    this.#ready.catch(() => undefined);
  }

  ask(method: Method, ...given: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) {
        reject(this.#closed);
        return;
      }
      this.#asked += 1;
      const id = this.#asked;
      this.#waiting.set(id, { resolve, reject });
      this.#ready.then(
        () => {
          if (this.#closed === undefined) this.#worker.postMessage({ id, method, given });
        },
        (error: unknown) => {
          this.#waiting.delete(id);
          reject(error instanceof Error ? error : new Error(String(error)));
        },
      );
    });
  }

  close(): void {
    this.#end(new Error("the engine was closed"));
  }

  #take(reply: Reply): void {
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if (waiting === undefined) return;
    if ("value" in reply) waiting.resolve(reply.value);
    else if ("mistake" in reply) waiting.reject(new MistakeError(reply.mistake));
    else waiting.reject(new Error(reply.failure));
  }

  #end(why: Error): void {
    this.#closed ??= why;
    this.#worker.terminate();
    for (const { reject } of this.#waiting.values()) reject(this.#closed);
    this.#waiting.clear();
  }
}

/** An engine in a worker of its own. */
export function createEngine(source: Source = BROWSER): Engine {
  const line = new Line(source);
  return {
    ...asking((method, given) => line.ask(method, ...given)),
    open: async (request) => liveOf(line, (await line.ask("open", request)) as number),
    close: () => {
      line.close();
    },
  };
}

function liveOf(line: Line, live: number): Live {
  return {
    advance: (until_s) => line.ask("advance", live, until_s) as Promise<Step>,
    change: (change) => line.ask("change", live, change) as Promise<void>,
    finish: () => line.ask("finish", live) as Promise<RunResult & { changed: string }>,
    close: () => {
      // If the engine is gone, so is the run.
      line.ask("close", live).catch(() => undefined);
    },
  };
}

/** What does not need the same worker twice. */
type Single = Omit<Engine, "open" | "close">;

function asking(ask: (method: Method, given: unknown[]) => Promise<unknown>): Single {
  return {
    catalogue: () => ask("catalogue", []) as Promise<Catalogue>,
    resolve: (document: Document) => ask("resolve", [document]) as Promise<Resolved>,
    run: (request: RunRequest) => ask("run", [request]) as Promise<RunResult>,
    summaries: (request: ScoreRequest) => ask("summaries", [request]) as Promise<string[][]>,
    packets: (request) => ask("packets", [request]) as Promise<Packets>,
    qlog: (request) => ask("qlog", [request]) as Promise<string>,
  };
}

/** Several engines. A request goes to the first that is free; those that wait are carried out in order. */
export interface Pool extends Single {
  readonly size: number;
  /**
   * The same pool for requests that `signal` cancels: their promises are rejected with its reason. One that waits is not begun;
   * a worker that is still busy with one after a moment is replaced.
   */
  cancelledBy(signal: AbortSignal): Single;
  close(): void;
}

/** A request that is over soon costs less than a new worker. */
const PATIENCE_MS = 100;

interface Job extends Waiting {
  method: Method;
  given: unknown[];
  signal: AbortSignal | undefined;
}

/** A pool of `size` engines: as many as the machine has cores, less one for the page, unless said. */
export function createPool(size: number = Math.max(1, (globalThis.navigator?.hardwareConcurrency ?? 2) - 1), source: Source = BROWSER): Pool {
  const free: Line[] = [];
  const busy = new Set<Line>();
  let jobs: Job[] = [];
  let closed = false;

  const dispatch = () => {
    while (jobs.length > 0 && busy.size < size) {
      const job = jobs.shift();
      if (job !== undefined) carryOut(job);
    }
  };
  const carryOut = (job: Job) => {
    const line = free.pop() ?? new Line(source);
    busy.add(line);
    let patience: ReturnType<typeof setTimeout> | undefined;
    const over = (keep: boolean) => {
      clearTimeout(patience);
      job.signal?.removeEventListener("abort", cancelled);
      // It may have been replaced already.
      if (!busy.delete(line) || closed) return;
      if (keep) free.push(line);
      else line.close();
      dispatch();
    };
    const cancelled = () => {
      patience = setTimeout(over, PATIENCE_MS, false);
    };
    job.signal?.addEventListener("abort", cancelled);
    line.ask(job.method, ...job.given).then(
      (value) => {
        over(true);
        job.resolve(value);
      },
      (error: unknown) => {
        // A mistake is an answer like any other; after anything else the worker may be gone.
        over(error instanceof MistakeError);
        job.reject(error as Error);
      },
    );
  };
  const ask = (method: Method, given: unknown[], signal: AbortSignal | undefined) =>
    new Promise((resolve, reject) => {
      if (closed) {
        reject(new Error("the engine was closed"));
        return;
      }
      if (signal?.aborted === true) {
        reject(reasonOf(signal));
        return;
      }
      const cancelled = () => {
        jobs = jobs.filter((other) => other !== job);
        reject(reasonOf(signal));
      };
      const done = () => signal?.removeEventListener("abort", cancelled);
      const job: Job = {
        method,
        given,
        signal,
        resolve: (value) => {
          done();
          resolve(value);
        },
        reject: (error) => {
          done();
          reject(error);
        },
      };
      signal?.addEventListener("abort", cancelled);
      jobs.push(job);
      dispatch();
    });
  return {
    size,
    ...asking((method, given) => ask(method, given, undefined)),
    cancelledBy: (signal) => asking((method, given) => ask(method, given, signal)),
    close: () => {
      closed = true;
      for (const line of [...free, ...busy]) line.close();
      for (const { reject } of jobs) reject(new Error("the engine was closed"));
      jobs = [];
    },
  };
}

function reasonOf(signal: AbortSignal | undefined): Error {
  if (signal === undefined) return new Error("it was cancelled");
  return signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason));
}
