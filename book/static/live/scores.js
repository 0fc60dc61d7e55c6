// Move one score: the softmax, its mask and its temperature.
import { h, number, set, slider } from "./dom.js";
import { softmax } from "./maths.js";

const SCORES = { the: 0.5, cat: 3, sat: 1, on: -1, it: 2 };

export default function scores() {
  const now = Object.values(SCORES);
  const mask = now.map(() => true);
  let temperature = 1;
  const said = h("p", { class: "said", "aria-live": "polite" });

  const rows = Object.keys(SCORES).map((word, j) => {
    const score = slider(
      word,
      {
        min: -5,
        max: 5,
        step: 0.1,
        value: now[j],
        shown: x => number(x, 1),
        "aria-label": `Score of ${word}`,
      },
      x => {
        now[j] = x;
        show();
      },
    );
    const look = h("input", {
      type: "checkbox",
      checked: true,
      "aria-label": `May look at ${word}`,
    });
    look.addEventListener("change", () => {
      mask[j] = look.checked;
      show();
    });
    const weight = h("td", { class: "model" });
    const row = h("tr", {}, h("td", {}, score.element), h("td", {}, look), weight);
    return { row, weight };
  });
  const warm = slider(
    "Temperature τ",
    { min: -1, max: 1, step: 0.05, value: 0, shown: x => number(10 ** x) },
    x => {
      temperature = 10 ** x;
      show();
    },
  );

  function show() {
    const weights = softmax(now, mask, temperature);
    rows.forEach(({ row, weight }, j) => {
      set(weight, { "--p": weights[j] });
      weight.textContent = number(weights[j]);
      row.classList.toggle("off", !mask[j]);
    });
    said.textContent = mask.includes(true)
      ? `The weights sum to 1. The largest is ${number(Math.max(...weights))}.`
      : "Nothing may be looked at: all weights are 0, and none is NaN.";
  }

  show();
  return [
    h(
      "table",
      { class: "scores" },
      h(
        "thead",
        {},
        h("tr", {}, ...["score", "may look", "weight"].map(x => h("th", { scope: "col" }, x))),
      ),
      h(
        "tbody",
        {},
        rows.map(x => x.row),
      ),
    ),
    warm.element,
    said,
  ];
}
