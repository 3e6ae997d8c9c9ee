// A choice of the catalogue, with its parameters.

import { createSignal, createUniqueId, For, Show } from "solid-js";

import type { Named } from "../engine/protocol";
import { choiceOf, withParameter } from "./choice";
import { Field } from "./field";

export interface ChooserProps {
  label: string;
  /** As `bbr1:probe_gain=1.5`. */
  value: string;
  /** What there is; undefined while the engine is asked. */
  choices: Named[] | undefined;
  wrong: string | null;
  onChange: (text: string) => void;
}

/** A list to choose from, and what can be set of the choice. */
export function Chooser(props: ChooserProps) {
  const id = createUniqueId();
  const [open, setOpen] = createSignal(false);
  const choice = () => choiceOf(props.value);
  const named = () => props.choices?.find(({ name }) => name === choice().name);
  const names = () => {
    const known = props.choices?.map(({ name }) => name) ?? [];
    // A link may say a name that the engine does not know; the engine then says so.
    return known.includes(choice().name) ? known : [choice().name, ...known];
  };
  return (
    <Field label={props.label} wrong={props.wrong}>
      {(tied) => (
        <>
          <div class="chooser">
            <select
              {...tied}
              title={named()?.summary}
              onChange={(event) => props.onChange(event.currentTarget.value)}
            >
              <For each={names()}>
                {(name) => <option value={name} selected={name === choice().name}>{name}</option>}
              </For>
            </select>
            <Show when={(named()?.parameters.length ?? 0) > 0}>
              <button
                type="button"
                class="small"
                aria-expanded={open()}
                aria-controls={`${id}-parameters`}
                aria-label={`Parameters of ${choice().name}`}
                title={`Parameters of ${choice().name}`}
                onClick={() => setOpen(!open())}
              >
                {choice().parameters.size === 0 ? "options" : `options (${String(choice().parameters.size)})`}
              </button>
            </Show>
          </div>
          <Show when={open()}>
            <div class="parameters" id={`${id}-parameters`} role="group" aria-label={`Parameters of ${choice().name}`}>
              <p class="quiet">{named()?.summary}</p>
              <For each={named()?.parameters}>
                {(parameter) => (
                  <label title={parameter.summary}>
                    <span>{parameter.name}</span>
                    <input
                      type="text"
                      autocomplete="off"
                      spellcheck={false}
                      placeholder={parameter.default}
                      value={choice().parameters.get(parameter.name) ?? ""}
                      onChange={(event) => props.onChange(withParameter(props.value, parameter.name, event.currentTarget.value))}
                    />
                  </label>
                )}
              </For>
            </div>
          </Show>
        </>
      )}
    </Field>
  );
}
