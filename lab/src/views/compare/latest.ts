// Work for what was asked last: while it is done, only the newest question waits.

/** How long work that nobody waits for may go on: what is over soon is still worth seeing while a slider moves. */
const PATIENCE_MS = 300;

export interface Latest<Question> {
  ask: (question: Question) => void;
  close: () => void;
}

/**
 * Begins `work` with each question, or with the last of those that came while it was busy. `superseded` tells it that another waits;
 * `signal` ends it where it takes long.
 */
export function createLatest<Question>(
  work: (question: Question, signal: AbortSignal, superseded: () => boolean) => Promise<void>,
): Latest<Question> {
  let waiting: { question: Question } | null = null;
  let running: AbortController | null = null;
  let patience: ReturnType<typeof setTimeout> | undefined;
  let closed = false;

  const next = async () => {
    while (waiting !== null && !closed) {
      const { question } = waiting;
      waiting = null;
      const controller = new AbortController();
      running = controller;
      await work(question, controller.signal, () => waiting !== null || closed);
      clearTimeout(patience);
      patience = undefined;
    }
    running = null;
  };

  return {
    ask: (question) => {
      waiting = { question };
      if (running === null) void next();
      else {
        const late = running;
        patience ??= setTimeout(() => {
          late.abort(new Error("superseded"));
        }, PATIENCE_MS);
      }
    },
    close: () => {
      closed = true;
      waiting = null;
      clearTimeout(patience);
      running?.abort(new Error("closed"));
    },
  };
}
