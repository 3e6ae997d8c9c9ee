// A worker with an engine.

import { type Question, serve } from "./serve";

const answer = serve((message, handed) => {
  self.postMessage(message, { transfer: handed });
});
self.onmessage = (event: MessageEvent<Question>) => {
  answer(event.data);
};
