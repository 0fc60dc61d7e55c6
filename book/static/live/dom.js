// What the widgets are made of.

// an element: h("button", { type: "button", onclick }, "Read")
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  set(element, attributes);
  element.append(...children.flat());
  return element;
}

const SVG = "http://www.w3.org/2000/svg";
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  set(element, attributes);
  element.append(...children.flat());
  return element;
}

export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else if (value === false || value == null) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : value);
  }
}

export const button = (text, onclick, attributes = {}) =>
  h("button", { type: "button", onclick, ...attributes }, text);

// a labelled slider, with its value beside it; `shown` says how the value is written
export function slider(label, { shown = String, ...range }, oninput) {
  const value = h("output");
  const input = h("input", { type: "range", ...range });
  const show = () => set(input, { "aria-valuetext": (value.value = shown(+input.value)) });
  const tell = () => {
    show();
    oninput(+input.value);
  };
  input.addEventListener("input", tell);
  show();
  const move = to => {
    input.value = to;
    tell();
  };
  return {
    element: h("label", { class: "slider" }, h("span", {}, label), input, value),
    input,
    move,
  };
}

// a number as a table shows it, with a real minus
export const number = (x, digits = 2) => {
  if (!Number.isFinite(x)) return x < 0 ? "−∞" : "∞";
  const text = x.toFixed(digits);
  return +text ? text.replace("-", "−") : text.replace("-", "");
};

export const wait = ms => new Promise(done => setTimeout(done, calm.matches ? 0 : ms));
export const calm = matchMedia("(prefers-reduced-motion: reduce)");
