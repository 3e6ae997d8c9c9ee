// The frame of the page: its head, the five views, and the theme.

import { createSignal, For, lazy, Show, Suspense } from "solid-js";
import { Dynamic } from "solid-js/web";

import { dismissRemark, follow, linkOf, remark, setup, view, VIEWS, type View } from "./state/place";

const TITLES: Record<View, string> = {
  live: "Live",
  compare: "Compare",
  map: "Map",
  packets: "Packets",
  gallery: "Gallery",
};

// A view is loaded when it is first looked at, so that the first paint waits for one only.
const PAGES = {
  live: lazy(() => import("./views/live/live")),
  compare: lazy(() => import("./views/compare/compare")),
  map: lazy(() => import("./views/map/map")),
  packets: lazy(() => import("./views/packets/packets")),
  gallery: lazy(() => import("./views/gallery/gallery")),
} satisfies Record<View, unknown>;

const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

function themeNow(): Theme {
  const message = document.documentElement.dataset["theme"];
  return message === "light" || message === "dark" ? message : "system";
}

export function App() {
  follow();
  const [theme, setTheme] = createSignal<Theme>(themeNow());
  const choose = (chosen: Theme) => {
    setTheme(chosen);
    if (chosen === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = chosen;
    try {
      localStorage.setItem("theme", chosen);
    } catch {
      // Storage may be forbidden; the choice then holds for this visit.
    }
  };
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>
        Skip to the content
      </a>
      <header class="head">
        <h1>Fullpipe lab</h1>
        <nav aria-label="Views">
          <For each={VIEWS}>
            {(one) => (
              <a href={linkOf(one, setup)} aria-current={view() === one ? "page" : undefined}>
                {TITLES[one]}
              </a>
            )}
          </For>
        </nav>
        <label class="theme">
          <span>Theme</span>
          <select value={theme()} onChange={(event) => choose(event.currentTarget.value as Theme)}>
            <For each={THEMES}>{(one) => <option value={one}>{one}</option>}</For>
          </select>
        </label>
      </header>
      {/* It is there before its text, or screen readers would not say it. */}
      <div class="remark" role="status">
        <Show when={remark()}>
          {(text) => (
            <>
              <p>{text()}</p>
              <button type="button" onClick={dismissRemark}>Dismiss</button>
            </>
          )}
        </Show>
      </div>
      <main id="main" tabindex="-1" aria-label={TITLES[view()]}>
        <Suspense fallback={<p class="wait">Loading …</p>}>
          <Dynamic component={PAGES[view()]} />
        </Suspense>
      </main>
    </>
  );
}
