// Rotary positions: a query and a key are hands of clocks, and their score knows only the distance.
import { button, h, number, set, slider, svg } from "./dom.js";
import { dot, rotary } from "./maths.js";

const HAND = Float32Array.of(1, 1, 0, 0); // two pairs, each a hand of length 1 that points right
const [BASE, FAR] = [100, 40]; // the fast hand turns by 1 radian a token, the slow one by 0.1
const [WIDTH, HEIGHT] = [320, 110];

const score = (i, j) => dot(rotary(HAND, i, BASE), rotary(HAND, j, BASE));

export default function clocks() {
  let [i, j] = [7, 3];
  const faces = ["fast: 1 radian a token", "slow: 0.1 radians a token"].map(face);
  const curve = Array.from({ length: 2 * FAR + 1 }, (_, at) => point(at - FAR, score(at - FAR, 0)));
  const mark = svg("circle", { r: 4, class: "mark" });
  const plot = svg(
    "svg",
    { viewBox: `-30 -12 ${WIDTH + 40} ${HEIGHT + 40}`, role: "img", class: "plot" },
    svg("line", { x1: 0, x2: WIDTH, y1: HEIGHT / 2, y2: HEIGHT / 2, class: "axis" }),
    svg("polyline", { points: curve.join(" ") }),
    mark,
    ...[-FAR, -FAR / 2, 0, FAR / 2, FAR].map(x =>
      svg("text", { x: point(x, 0)[0], y: HEIGHT + 14, "text-anchor": "middle" }, number(x, 0)),
    ),
    ...[-2, 0, 2].map(y =>
      svg("text", { x: -8, y: point(0, y)[1] + 4, "text-anchor": "end" }, number(y, 0)),
    ),
    svg("text", { x: WIDTH / 2, y: HEIGHT + 27, "text-anchor": "middle" }, "distance i − j"),
  );
  const said = h("p", { class: "said", "aria-live": "polite" });
  const place = (name, value, to) =>
    slider(name, { min: 0, max: FAR, step: 1, value }, x => (to(x), show()));
  const query = place("Query at i", i, x => (i = x));
  const key = place("Key at j", j, x => (j = x));
  const shift = by => {
    if (Math.max(i, j) + by > FAR || Math.min(i, j) + by < 0) return;
    const [to, from] = [i + by, j + by];
    query.move(to);
    key.move(from);
  };

  function show() {
    const [q, k] = [rotary(HAND, i, BASE), rotary(HAND, j, BASE)];
    faces.forEach((clock, c) => clock.turn([q[c], q[c + 2]], [k[c], k[c + 2]]));
    const found = dot(q, k);
    const [cx, cy] = point(i - j, found);
    set(mark, { cx, cy });
    plot.setAttribute("aria-label", `Score by distance: ${number(found)} at ${number(i - j, 0)}`);
    said.textContent =
      `Distance i − j = ${number(i - j, 0)}: cos ${number(i - j, 0)} + cos ${number((i - j) / 10, 1)} = ` +
      `${number(found)}, wherever the two are.`;
  }

  show();
  return [
    h(
      "p",
      { class: "key" },
      h("span", { class: "of-query" }, "query"),
      h("span", { class: "of-key" }, "key"),
    ),
    h(
      "div",
      { class: "faces" },
      faces.map(x => x.element),
      plot,
    ),
    h("div", { class: "sliders" }, query.element, key.element),
    h(
      "div",
      { class: "buttons" },
      button("Both one to the left", () => shift(-1)),
      button("Both one to the right", () => shift(1)),
    ),
    said,
  ];
}

const point = (distance, found) => [
  ((distance + FAR) / (2 * FAR)) * WIDTH,
  HEIGHT / 2 - (found / 2) * (HEIGHT / 2),
];

function face(name) {
  const hands = ["key", "query"].map(role => svg("line", { class: role }));
  const clock = svg(
    "svg",
    { viewBox: "-1.15 -1.15 2.3 2.3", role: "img" },
    svg("circle", { r: 1.05 }),
    hands,
  );
  const turn = (q, k) => {
    [k, q].forEach(([x, y], at) => set(hands[at], { x1: 0, y1: 0, x2: x, y2: -y }));
    const angle = ([x, y]) => `${Math.round((Math.atan2(y, x) * 180) / Math.PI)} degrees`;
    clock.setAttribute(
      "aria-label",
      `Clock, ${name}: the query at ${angle(q)}, the key at ${angle(k)}`,
    );
  };
  return { element: h("figure", {}, clock, h("figcaption", {}, name)), turn };
}
