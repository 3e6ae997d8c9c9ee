// A figure becomes interactive when it comes into view. Should that fail, its picture stays.
const options = { actions: false, renderer: "svg" };
const NARROW = 640, AXES = 100, LEAST = 180;

// Lines of words that fit.
const wrapped = (text, letters) => {
  const lines = [""];
  for (const word of [text].flat().join(" ").split(" ")) {
    const line = lines[lines.length - 1];
    if (line && line.length + word.length >= letters) lines.push(word);
    else lines[lines.length - 1] = line ? `${line} ${word}` : word;
  }
  return lines;
};

// The same figure for a narrow screen: panels one below the other, titles on several lines.
const narrowed = (part, room) => {
  if (Array.isArray(part)) return part.map((one) => narrowed(one, room));
  if (part === null || typeof part !== "object") return part;
  const made = {};
  for (const [key, value] of Object.entries(part)) {
    if (key === "values" || key === "datasets") made[key] = value;
    else if (key === "hconcat") made.vconcat = narrowed(value, room);
    else if (key === "width" && typeof value === "number" && value > LEAST) made.width = Math.max(LEAST, Math.min(value, room - AXES));
    else if (key === "columns") made.columns = part.concat ? 1 : Math.min(value, 2);
    // Panels that were side by side shared the labels of the first.
    else if (key === "labels" && value === false) made.labels = true;
    else if (key === "labelLimit") made.labelLimit = Math.min(value, 130);
    else if (key === "gradientLength") made.gradientLength = Math.min(value, room - AXES);
    else if (key === "text" && part.subtitle !== undefined) made.text = wrapped(value, room / 9);
    else if (key === "subtitle") made.subtitle = wrapped(value, room / 6.5);
    else if (key === "title" && typeof value === "string" && value.length > 40) made.title = wrapped(value, room / 6.5);
    else if (key === "text" && typeof value === "string" && value.length > 40) made.text = wrapped(value, room / 7);
    else made[key] = narrowed(value, room);
  }
  return made;
};

// The time that a figure covers, where it can be zoomed.
const duration = (part) => {
  if (part === null || typeof part !== "object") return 0;
  const own = part.x && part.x.field === "time_s" && part.x.scale && part.x.scale.domain;
  return Math.max(0, own ? own[1] : 0, ...Object.entries(part).filter(([key]) => key !== "values").map(([, one]) => duration(one)));
};

const button = (name, act) => {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = name;
  made.addEventListener("click", act);
  return made;
};

// Buttons do with the keyboard what the mouse does.
const zooms = (view, whole) => {
  const show = (about) => {
    const [from, to] = view.signal("zoom_time_s") || [0, whole];
    view.signal("zoom_time_s", about(from, to, to - from)).runAsync();
  };
  return [
    button("Zoom in", () => show((from, to, size) => [from + size / 4, to - size / 4])),
    button("Zoom out", () => show((from, to, size) => [Math.max(0, from - size / 2), Math.min(whole, to + size / 2)])),
    button("Earlier", () => show((from, to, size) => (from < size / 4 ? [0, size] : [from - size / 4, to - size / 4]))),
    button("Later", () => show((from, to, size) => (to + size / 4 > whole ? [whole - size, whole] : [from + size / 4, to + size / 4]))),
    button("Whole run", () => view.signal("zoom_time_s", null).runAsync()),
  ];
};

const linked = (picture) => {
  const link = document.createElement("a");
  link.textContent = "Open as SVG";
  link.target = "_blank";
  link.href = URL.createObjectURL(new Blob([picture.outerHTML], { type: "image/svg+xml" }));
  return link;
};

const live = (chart) => {
  const spec = specs[Number(chart.id.split("-")[1])];
  const picture = chart.querySelector("svg");
  const fits = innerWidth > NARROW || (spec.usermeta || {}).narrow !== "scroll";
  const drawn = document.createElement("div");
  const shown = innerWidth > NARROW || !fits ? spec : narrowed(spec, chart.clientWidth);
  vegaEmbed(drawn, shown, options)
    .then(({ view }) => {
      const svg = drawn.querySelector("svg");
      for (const name of ["role", "aria-label"]) svg.setAttribute(name, picture.getAttribute(name));
      const controls = document.createElement("div");
      controls.className = "controls";
      const zoomable = (spec.params || []).some((one) => one.name === "zoom");
      controls.append(...(zoomable ? zooms(view, duration(spec)) : []), linked(picture));
      chart.replaceChildren(drawn);
      chart.classList.toggle("fits", fits);
      chart.parentElement.querySelector("figcaption").before(controls);
      if (zoomable) document.body.classList.add("is-live");
    })
    .catch((error) => console.warn("The figure stays a picture:", error));
};

const watch = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    watch.unobserve(entry.target);
    live(entry.target);
  }
});
document.querySelectorAll(".chart").forEach((chart) => watch.observe(chart));
