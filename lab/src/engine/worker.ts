// A worker with an engine.

import { type Question, serve } from "./serve";

const answer = serve((said, handed) => {
  self.postMessage(said, { transfer: handed });
});
self.onmessage = (event: MessageEvent<Question>) => {
  answer(event.data);
};
