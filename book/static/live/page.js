// Each place of a live part gets its widget once it comes near the window.
const places = document.querySelectorAll(".live");
const near = new IntersectionObserver(
  entries => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) start(target);
  },
  { rootMargin: "300px" },
);
for (const place of places) near.observe(place);

async function start(place) {
  near.unobserve(place);
  try {
    const { default: widget } = await import(`./${place.dataset.live}.js`);
    place.replaceChildren(...(await widget()));
  } catch (problem) {
    place.innerHTML = place.querySelector("noscript").textContent;
    console.error(problem);
  }
  place.dataset.ready = "";
}
