// A figure becomes interactive when it comes into view. Should that fail, its picture stays.
const options = { actions: false, renderer: "svg" };
const watch = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    watch.unobserve(entry.target);
    const live = document.createElement("div");
    vegaEmbed(live, specs[Number(entry.target.id.split("-")[1])], options)
      .then(() => {
        entry.target.replaceChildren(live);
        document.body.classList.add("is-live");
      })
      .catch((error) => console.warn("The figure stays a picture:", error));
  }
});
document.querySelectorAll(".chart").forEach((chart) => watch.observe(chart));
