// One field of a form: a label, what is typed, and below it what is wrong with it.

import { createSignal, createUniqueId, Show, type JSX } from "solid-js";

import {
  amountOf, bufferRange, stopNear, stopsOf, textOf, type Kind, type Range,
} from "./quantity";

export interface FieldProps {
  label: string;
  /** What is wrong with it; null if nothing is. */
  wrong: string | null;
  hint?: string | undefined;
  /** Gets what the input itself needs: its id, and the attributes that tie the message to it. */
  children: (tied: {
    id: string;
    "aria-invalid": "true" | undefined;
    "aria-describedby": string | undefined;
  }) => JSX.Element;
}

/** A label above an input, and the message below. */
export function Field(props: FieldProps) {
  const id = createUniqueId();
  const described = () =>
    [props.wrong === null ? "" : `${id}-wrong`, props.hint === undefined ? "" : `${id}-hint`].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      {props.children({
        id,
        get "aria-invalid"() {
          return props.wrong === null ? undefined : ("true" as const);
        },
        get "aria-describedby"() {
          return described() || undefined;
        },
      })}
      <Show when={props.hint}>
        <p class="hint quiet" id={`${id}-hint`}>{props.hint}</p>
      </Show>
      <Show when={props.wrong}>
        <p class="wrong" id={`${id}-wrong`} role="alert">{props.wrong}</p>
      </Show>
    </div>
  );
}

export interface QuantityFieldProps {
  label: string;
  kind: Kind;
  value: string;
  wrong: string | null;
  /** Of the slider; a buffer's follows the unit of its text. */
  range?: Range | undefined;
  hint?: string | undefined;
  placeholder?: string | undefined;
  /** A slider calls it as it moves; the text when it is left, or Enter is pressed. */
  onChange: (text: string) => void;
}

/** A quantity: as text with a unit, and as a slider. Both say the same. */
export function QuantityField(props: QuantityFieldProps) {
  const amount = () => amountOf(props.kind, props.value);
  const range = () => props.range ?? bufferRange(amount()?.unit ?? "base");
  const [stood, setStood] = createSignal(0);
  const position = () => {
    const now = amount();
    return now === null ? stood() : stopNear(now.value, range());
  };
  const slide = (to: number) => {
    setStood(to);
    const value = stopsOf(range())[to] ?? range().most;
    const unit = amount()?.unit ?? "base";
    if (range().nothing === true && value === 0) props.onChange("");
    else props.onChange(textOf(props.kind, { value, unit }));
  };
  return (
    <Field label={props.label} wrong={props.wrong} hint={props.hint}>
      {(tied) => (
        <div class="quantity">
          <input
            type="range"
            min="0"
            max={stopsOf(range()).length - 1}
            step="1"
            aria-label={`${props.label}, slider`}
            aria-valuetext={props.value || "none"}
            value={position()}
            onInput={(event) => slide(Number(event.currentTarget.value))}
          />
          <input
            {...tied}
            type="text"
            autocomplete="off"
            spellcheck={false}
            placeholder={props.placeholder ?? ""}
            value={props.value}
            onChange={(event) => props.onChange(event.currentTarget.value.trim())}
          />
        </div>
      )}
    </Field>
  );
}
