// Where the visitor is: the view and the setup, both in the address after `#`, so that a link is all there is.

import { createEffect, createSignal, onCleanup } from "solid-js";
import { createStore, reconcile, unwrap } from "solid-js/store";

import { parametersOf, remarksOn, sentenceOf, setupOf, type Remark, type Setup } from "./setup";

export const VIEWS = ["live", "compare", "map", "packets", "gallery"] as const;
export type View = (typeof VIEWS)[number];

/** The fragment of a link to a view of a setup. `more` is the view's own: the claim of the gallery, the flow of the packets. */
export function linkOf(view: View, setup: Setup, more: Record<string, string> = {}): string {
  const message = parametersOf(setup);
  for (const [key, value] of Object.entries(more)) message.set(key, value);
  const query = message.toString();
  return `#/${view}${query === "" ? "" : `?${query}`}`;
}

/** What a fragment says; the live view where it says nothing that is known. `remarks` is what of it cannot be used. */
export function placeOf(fragment: string): { view: View; setup: Setup; message: URLSearchParams; remarks: Remark[] } {
  const [path = "", query = ""] = fragment.replace(/^#\/?/, "").split(/\?(.*)/s);
  const message = new URLSearchParams(query);
  const view = VIEWS.find((view) => view === path);
  const strange: Remark[] = view === undefined && path !== "" ? [{ name: "the view", given: path, instead: "there is no such view, so Live is shown" }] : [];
  return { view: view ?? "live", setup: setupOf(message), message, remarks: [...strange, ...remarksOn(message)] };
}

const SETUP_KEYS = new Set(["rate", "rtt", "buffer", "loss", "jitter", "queue", "duration", "ecn", "pacing", "seed", "cc", "with", "toml"]);

const start = placeOf(typeof location === "undefined" ? "" : location.hash);
const [view, setView] = createSignal<View>(start.view);
const [message, setMessage] = createSignal(start.message);
const [setup, setStore] = createStore<Setup>(start.setup);

// What the link says that cannot be used: what the page itself found, and what the view did.
const [found, setFound] = createSignal<Remark[]>(start.remarks);
const [foundByView, setFoundByView] = createSignal<Remark[]>([]);
const [dismissed, setDismissed] = createSignal("");

export { setup, view };

/** What of the link cannot be used, as one sentence; empty if nothing, or if the visitor has dismissed it. */
export function remark(): string {
  const sentence = sentenceOf([...found(), ...foundByView()]);
  return sentence === dismissed() ? "" : sentence;
}

/** The visitor has read it. */
export function dismissRemark(): void {
  setDismissed(sentenceOf([...found(), ...foundByView()]));
}

/** A view says which of its own parameters cannot be used; call once, within a root. */
export function createRemarks(judge: () => Remark[]): void {
  createEffect(() => setFoundByView(judge()));
  onCleanup(() => setFoundByView([]));
}

/** The remark on a parameter of a view that is none of `all`; none if it is one, or is not said. */
export function notAmong(key: string, all: readonly unknown[], used: unknown): Remark[] {
  const given = own(key);
  return given === null || all.some((one) => String(one) === given) ? [] : [{ name: key, given, instead: `${String(used)} is used instead` }];
}

/** A parameter of the link that a view has for itself. */
export function own(key: string): string | null {
  return message().get(key);
}

let waiting: ReturnType<typeof setTimeout> | undefined;
let ownKeys = ownOf(start.message);

/** What a link says beside the setup: it stays in the link when the setup changes. */
function ownOf(link: URLSearchParams): Record<string, string> {
  return Object.fromEntries([...link].filter(([key]) => !SETUP_KEYS.has(key)));
}

function write(): void {
  clearTimeout(waiting);
  // A slider that moves must not fill the browser's history, nor meet its limit of changes a second.
  waiting = setTimeout(() => {
    history.replaceState(null, "", linkOf(view(), unwrap(setup), ownKeys));
  }, 200);
}

/** Changes some of the setup; the link follows. */
export function change(some: Partial<Setup>): void {
  setStore(some);
  write();
}

/** Says what the view itself wants kept in the link. */
export function keep(more: Record<string, string>): void {
  ownKeys = more;
  setMessage(new URLSearchParams({ ...Object.fromEntries(parametersOf(unwrap(setup))), ...more }));
  write();
}

/** Goes to a view, with a setup of its own if one is given; the browser's way back leads here. */
export function go(to: View, to_setup: Setup = unwrap(setup), more: Record<string, string> = {}): void {
  location.hash = linkOf(to, to_setup, more);
}

/** Follows the address; call once, within a root. */
export function follow(): void {
  const read = () => {
    clearTimeout(waiting);
    const place = placeOf(location.hash);
    ownKeys = ownOf(place.message);
    setView(place.view);
    setDismissed("");
    setFound(place.remarks);
    setMessage(place.message);
    setStore(reconcile(place.setup));
  };
  addEventListener("hashchange", read);
  onCleanup(() => {
    removeEventListener("hashchange", read);
  });
}
