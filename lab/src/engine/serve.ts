// What a worker and the page say to each other, and how a worker answers.

import { type Mistake, MistakeError } from "./protocol";
import { Wasm } from "./wasm";

/** What can be asked: the methods of the engine. */
export type Method = Exclude<keyof Wasm, "module">;

/** The first message is the module; all others are questions. */
export type Question = { module: WebAssembly.Module } | { id: number; method: Method; given: unknown[] };

/** A worker answers each question once, in order. */
export type Reply = { id: number; value: unknown } | { id: number; mistake: Mistake } | { id: number; failure: string };

/** Answers questions. `reply` gets the buffers that it may hand over. */
export function serve(reply: (wording: Reply, handed: ArrayBuffer[]) => void): (question: Question) => void {
  let engine: Wasm | undefined;
  return (question) => {
    if ("module" in question) {
      engine = new Wasm(question.module);
      return;
    }
    const { id, method, given } = question;
    try {
      if (engine === undefined) throw new Error("the engine has no module yet");
      const value = (engine[method] as (...given: unknown[]) => unknown).apply(engine, given);
      reply({ id, value }, buffersOf(value));
    } catch (error) {
      if (error instanceof MistakeError) reply({ id, mistake: error.mistake }, []);
      else reply({ id, failure: error instanceof Error ? error.message : String(error) }, []);
    }
  };
}

/** The buffer of the columns in an answer: one, if there are any. */
function buffersOf(value: unknown): ArrayBuffer[] {
  if (value instanceof Float64Array) return value.buffer instanceof ArrayBuffer ? [value.buffer] : [];
  if (typeof value !== "object" || value === null) return [];
  for (const part of Object.values(value)) {
    const found = buffersOf(part);
    if (found.length > 0) return found;
  }
  return [];
}
