// The online softmax: scores come a tile at a time, and three numbers are all that is kept.
import { button, h, number, set, slider } from "./dom.js";
import { dot, onlineSoftmax, softmax } from "./maths.js";

const SCORES = [1, 2, 0, 1, 3, 0, 2, 1, 4, 0, 1, 2];
const VALUES = [1, 3, 2, 0, 4, 1, 2, 2, 5, 3, 0, 1];
const SIZES = [1, 2, 3, 4, 6, 12];

export default function tiles() {
  const scores = [...SCORES];
  let [size, done] = [3, 1];
  const columns = scores.map((score, j) => {
    const value = h("span", {}, number(score, 0));
    const input = h("input", {
      type: "range",
      min: -2,
      max: 6,
      step: 1,
      value: score,
      "aria-label": `Score ${j + 1}, whose value is ${VALUES[j]}`,
      oninput: () => {
        scores[j] = +input.value;
        value.textContent = number(scores[j], 0);
        show();
      },
    });
    return h("div", {}, value, input, h("b", {}, VALUES[j]));
  });
  const read = slider("Tiles read", { min: 0, max: 4, step: 1, value: done }, x => {
    done = x;
    show();
  });
  const sizes = h(
    "select",
    {},
    SIZES.map(x => h("option", { selected: x === size }, x)),
  );
  sizes.addEventListener("change", () => {
    size = +sizes.value;
    set(read.input, { max: scores.length / size });
    read.move(Math.min(done, scores.length / size));
  });
  const body = h("tbody");
  const said = h("p", { class: "said", "aria-live": "polite" });

  function show() {
    const states = onlineSoftmax(scores, VALUES, size);
    columns.forEach((column, j) => {
      const tile = Math.floor(j / size) + 1;
      column.className = tile === done ? "now" : tile < done ? "gone" : "";
      column.classList.toggle("first", j % size === 0);
    });
    body.replaceChildren(
      ...states
        .slice(0, done + 1)
        .map(({ m, l, o, shrink }, tile) =>
          h(
            "tr",
            { class: tile === done && "now" },
            h("th", { scope: "row" }, tile ? `tile ${tile}` : "before"),
            ...[tile ? number(shrink, 3) : "", number(m, 0), number(l, 3), number(o, 3)].map(x =>
              h("td", {}, x),
            ),
          ),
        ),
    );
    const all = dot(softmax(scores), VALUES);
    const { l, o } = states[done];
    const end = done === states.length - 1;
    said.textContent = done
      ? `o / ℓ = ${number(o / l, 3)}${end ? `, and the softmax of all scores at once gives ${number(all, 3)}.` : ` so far; the softmax of all scores at once gives ${number(all, 3)}.`}`
      : "Nothing has been read yet.";
  }

  const step = by => read.move(done + by);
  show();
  return [
    h("p", { class: "key" }, "Above each slider its score, below it the value in bold."),
    h("div", { class: "tiles" }, columns),
    h(
      "div",
      { class: "buttons" },
      h("label", {}, "Scores in a tile ", sizes),
      button("Back", () => step(-1)),
      button("Next tile", () => step(1)),
    ),
    read.element,
    h(
      "table",
      { class: "states" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("td"),
          ...["shrink by", "m", "ℓ", "o"].map(x => h("th", { scope: "col" }, x)),
        ),
      ),
      body,
    ),
    said,
  ];
}
