// The form of a setup: the path, the controllers, the competitors, the run; or a whole scenario as text.

import "./ui.css";

import { For, createEffect, createSignal, Index, onCleanup, Show, type JSX } from "solid-js";

import type { Catalogue, Mistake } from "../engine/protocol";
import { change, setup } from "../state/place";
import {
  comparison, DEFAULTS, MOST_COMPETITORS, MOST_CONTROLLERS, shared, type Competitor, type Setup,
} from "../state/setup";
import { Chooser } from "./chooser";
import { Field, QuantityField } from "./field";
import { fieldOf, textBelow, type Form } from "./mistakes";
import { RANGES } from "./quantity";

/** As in styles.css, where the form stands beside what it gives. */
const WIDE = "(min-width: 60.01rem)";

export interface SetupPanelProps {
  catalogue: Catalogue | undefined;
  /** What the engine refuses; null if nothing. */
  mistake: Mistake | null;
  /** What the engine has to say about the setup. */
  notes?: readonly string[];
  /** Which document the view makes of the setup. */
  form: Form;
  /** Fields that mean nothing in the view. */
  without?: readonly (keyof Setup)[];
  /** Hints below fields, by the field's name. */
  hints?: Partial<Record<keyof Setup, string>>;
  /** Gets every change; `place.change` unless said. */
  onChange?: (some: Partial<Setup>) => void;
  /** The view's own controls, above the form. */
  children?: JSX.Element;
}

/** The form. It reads the setup of the page. */
export function SetupPanel(props: SetupPanelProps) {
  const set = (some: Partial<Setup>) => (props.onChange ?? change)(some);
  const shows = (field: keyof Setup) => props.without?.includes(field) !== true;
  const where = () => (props.mistake === null ? null : fieldOf(props.mistake, setup, props.form));
  const wrong = (field: string) => (props.mistake !== null && where() === field ? textBelow(props.mistake, field) : null);
  const elsewhere = () => (props.mistake !== null && where() === null ? props.mistake.message : null);

  const setController = (index: number, text: string) =>
    set({ controllers: setup.controllers.map((one, at) => (at === index ? text : one)) });
  const addController = () => {
    const known = props.catalogue?.controllers.map(({ name }) => name) ?? [];
    const next = known.find((name) => !setup.controllers.some((one) => one.split(":")[0] === name));
    set({ controllers: [...setup.controllers, next ?? "reno"] });
  };
  const setCompetitor = (index: number, some: Partial<Competitor>) =>
    set({ competitors: setup.competitors.map((one, at) => (at === index ? { ...one, ...some } : one)) });
  const inWords = () => (props.form === "shared" ? shared(setup) : comparison(setup)).text;

  // Where it is narrow, the form is folded, so that what it gives is in sight.
  const wide = matchMedia(WIDE);
  const [open, setOpen] = createSignal(wide.matches);
  const follow = () => setOpen(wide.matches);
  wide.addEventListener("change", follow);
  onCleanup(() => wide.removeEventListener("change", follow));
  createEffect(() => {
    if (props.mistake !== null) setOpen(true);
  });
  const inShort = () =>
    setup.text === "" ? [setup.rate, setup.rtt, `buffer ${setup.buffer}`, setup.controllers.join(", ")].join(" · ") : "your own TOML";

  return (
    <details class="fold" open={open()} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <strong>Setup</strong> <span class="quiet">{inShort()}</span>
      </summary>
      <form class="setup" aria-label="Setup" onSubmit={(event) => event.preventDefault()}>
        {props.children}
        <For each={props.notes}>{(note) => <p class="quiet note">{note}</p>}</For>
        <Show when={elsewhere()}>
          <p class="wrong" role="alert">{elsewhere()}</p>
        </Show>
        <Show when={setup.text === ""} fallback={
          <>
            <Field label="Scenario (TOML)" wrong={wrong("text")} hint="The whole scenario. It is part of the link.">
              {(tied) => (
                <textarea
                  {...tied}
                  rows="18"
                  spellcheck={false}
                  autocomplete="off"
                  value={setup.text}
                  // An emptied field stays: no text at all would mean the form.
                  onChange={(event) => set({ text: event.currentTarget.value || "\n" })}
                />
              )}
            </Field>
            <button type="button" onClick={() => set({ text: "" })}>Back to the form</button>
          </>
        }>
          <fieldset>
            <legend>Path</legend>
            <Show when={shows("rate")}>
              <QuantityField label="Rate" kind="rate" value={setup.rate} range={RANGES.rate} wrong={wrong("rate")}
                hint={props.hints?.rate} onChange={(rate) => set({ rate })} />
            </Show>
            <Show when={shows("rtt")}>
              <QuantityField label="RTT" kind="duration" value={setup.rtt} range={RANGES.rtt} wrong={wrong("rtt")}
                hint={props.hints?.rtt} onChange={(rtt) => set({ rtt })} />
            </Show>
            <Show when={shows("buffer")}>
              <QuantityField label="Buffer" kind="size" value={setup.buffer} wrong={wrong("buffer")}
                hint={props.hints?.buffer} onChange={(buffer) => set({ buffer })} />
            </Show>
            <QuantityField label="Loss" kind="probability" value={setup.loss} range={RANGES.loss} wrong={wrong("loss")}
              placeholder="none" hint={props.hints?.loss} onChange={(loss) => set({ loss })} />
            <Show when={shows("jitter")}>
              <QuantityField label="Jitter" kind="duration" value={setup.jitter} range={RANGES.jitter} wrong={wrong("jitter")}
                placeholder="none" hint={props.hints?.jitter} onChange={(jitter) => set({ jitter })} />
            </Show>
            <Chooser label="Queue" value={setup.queue} choices={props.catalogue?.queues} wrong={wrong("queue")}
              onChange={(queue) => set({ queue })} />
            <label class="check">
              <input type="checkbox" checked={setup.ecn} onChange={(event) => set({ ecn: event.currentTarget.checked })} />
              <span>Hosts use ECN</span>
            </label>
            <Show when={wrong("ecn")}><p class="wrong" role="alert">{wrong("ecn")}</p></Show>
            <Show when={shows("pacing")}>
              <label class="check">
                <input type="checkbox" checked={setup.pacing} onChange={(event) => set({ pacing: event.currentTarget.checked })} />
                <span>Hosts pace every flow (fq)</span>
              </label>
            </Show>
          </fieldset>

          <Show when={shows("controllers")}>
            <fieldset>
              <legend>Controllers</legend>
              <Index each={setup.controllers}>
                {(controller, index) => (
                  <div class="removable">
                    <Chooser label={`Controller ${String(index + 1)}`} value={controller()} choices={props.catalogue?.controllers}
                      wrong={wrong(`controllers.${String(index)}`)} onChange={(text) => setController(index, text)} />
                    <Show when={setup.controllers.length > 1}>
                      <button type="button" class="small" aria-label={`Remove controller ${String(index + 1)}`} title="Remove"
                        onClick={() => set({ controllers: setup.controllers.filter((_, at) => at !== index) })}>×</button>
                    </Show>
                  </div>
                )}
              </Index>
              <Show when={setup.controllers.length < MOST_CONTROLLERS}>
                <button type="button" onClick={addController}>Add a controller</button>
              </Show>
            </fieldset>
          </Show>

          <Show when={shows("competitors")}>
            <fieldset>
              <legend>Competitors</legend>
              <Index each={setup.competitors}>
                {(competitor, index) => (
                  <div class="removable">
                    <Field label="Flows" wrong={null}>
                      {(tied) => (
                        <input {...tied} type="number" min="1" max={MOST_COMPETITORS} value={competitor().count}
                          onChange={(event) => {
                            const count = Math.min(Math.max(Math.round(event.currentTarget.valueAsNumber) || 1, 1), MOST_COMPETITORS);
                            event.currentTarget.value = String(count);
                            setCompetitor(index, { count });
                          }} />
                      )}
                    </Field>
                    <Chooser label={`Competitor ${String(index + 1)}`} value={competitor().controller}
                      choices={props.catalogue?.controllers} wrong={wrong(`competitors.${String(index)}`)}
                      onChange={(controller) => setCompetitor(index, { controller })} />
                    <button type="button" class="small" aria-label={`Remove competitor ${String(index + 1)}`} title="Remove"
                      onClick={() => set({ competitors: setup.competitors.filter((_, at) => at !== index) })}>×</button>
                  </div>
                )}
              </Index>
              <Show when={setup.competitors.length < MOST_CONTROLLERS}>
                <button type="button" onClick={() => set({ competitors: [...setup.competitors, { controller: "cubic", count: 1 }] })}>
                  Add competitors
                </button>
              </Show>
            </fieldset>
          </Show>

          <fieldset>
            <legend>Run</legend>
            <div class="pair">
              <Show when={shows("duration")}>
                <Field label="Duration" wrong={wrong("duration")} hint={props.hints?.duration}>
                  {(tied) => (
                    <input {...tied} type="text" autocomplete="off" spellcheck={false} value={setup.duration}
                      onChange={(event) => set({ duration: event.currentTarget.value.trim() })} />
                  )}
                </Field>
              </Show>
              <Show when={shows("seed")}>
                <Seed wrong={wrong("seed")} set={(seed) => set({ seed })} />
              </Show>
            </div>
            <div class="row">
              <button type="button" onClick={() => set({ text: inWords() })}>Write TOML yourself</button>
              <button type="button" onClick={() => set({ ...DEFAULTS, controllers: [...DEFAULTS.controllers], competitors: [] })}>
                Reset
              </button>
            </div>
          </fieldset>
        </Show>
        <Show when={setup.text !== ""}>
          <Seed wrong={wrong("seed")} set={(seed) => set({ seed })} />
        </Show>
      </form>
    </details>
  );
}

function Seed(props: { wrong: string | null; set: (seed: number) => void }) {
  return (
    <Field label="Seed" wrong={props.wrong}>
      {(tied) => (
        <input {...tied} type="number" min="0" max={Number.MAX_SAFE_INTEGER} step="1" value={setup.seed}
          onChange={(event) => {
            const wording = event.currentTarget.valueAsNumber;
            const seed = Number.isSafeInteger(wording) && wording >= 0 ? wording : setup.seed;
            event.currentTarget.value = String(seed);
            props.set(seed);
          }} />
      )}
    </Field>
  );
}
