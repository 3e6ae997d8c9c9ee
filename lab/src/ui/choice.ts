// A controller or a queue by name, with parameters: `bbr1:probe_gain=1.5,cwnd_gain=2`.

export interface Choice {
  name: string;
  /** In the order in which they were written. */
  parameters: Map<string, string>;
}

export function choiceOf(text: string): Choice {
  const [name = "", rest = ""] = text.split(/:(.*)/s);
  const parameters = new Map<string, string>();
  for (const one of rest.split(",")) {
    const [key = "", value = ""] = one.split(/=(.*)/s);
    if (key.trim() !== "") parameters.set(key.trim(), value.trim());
  }
  return { name: name.trim(), parameters };
}

export function choiceText({ name, parameters }: Choice): string {
  const message = [...parameters].map(([key, value]) => `${key}=${value}`);
  return message.length === 0 ? name : `${name}:${message.join(",")}`;
}

/** The same choice with one parameter set; an empty value leaves it as by default. */
export function withParameter(text: string, parameter: string, value: string): string {
  const choice = choiceOf(text);
  // A comma would begin another parameter.
  const clean = value.replaceAll(",", " ").trim();
  if (clean === "") choice.parameters.delete(parameter);
  else choice.parameters.set(parameter, clean);
  return choiceText(choice);
}
