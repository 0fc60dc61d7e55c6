// Elements, numbers and colours: what every view of the page needs.

const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

/** Make an element: its attributes, listeners ("onclick") and children. */
function el(tag, attributes = {}, ...children) {
  const drawn = ["svg", "path", "g", "line"].includes(tag);
  const made = drawn ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "html") made.innerHTML = value;
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child != null));
  return made;
}

/** All numbers of the page, unpacked from half precision. */
const numbers = (() => {
  const table = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
    table[bits] = sign * (exponent === 0 ? fraction * 2 ** -24
      : exponent === 31 ? Infinity : (1 + fraction / 1024) * 2 ** (exponent - 15));
  }
  const bytes = atob(data.numbers);
  const found = new Float32Array(bytes.length / 2);
  for (let i = 0; i < found.length; i++) {
    found[i] = table[bytes.charCodeAt(2 * i) | (bytes.charCodeAt(2 * i + 1) << 8)];
  }
  return found;
})();

const take = (at, length) => numbers.subarray(at, at + length);

/** Write a number in three digits, with a real minus. */
function said(number) {
  if (number === 0) return "0";
  const size = Math.abs(number);
  const text = size >= 1000 || size < 0.001 ? number.toExponential(1)
    : number.toPrecision(size >= 100 ? 3 : 2 + (size >= 0.1));
  return text.replace("-", "−");
}

const percent = (share) => share > 0 && share < 0.001 ? "< 0.1 %"
  : `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;

/** Return a colour of the page as it is now, light or dark, as three numbers. */
function colour(name) {
  const text = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
}

const mixed = (from, to, share) =>
  from.map((channel, i) => Math.round(channel + (to[i] - channel) * share));

/** Return what turns a number into a colour: signed ones go both ways from the background. */
function scale(limit, signed) {
  const nothing = colour("--cell"), above = colour(signed ? "--above" : "--weight");
  const below = colour("--below");
  return (number) => {
    const share = Math.min(1, Math.abs(number) / limit) ** 0.8;
    return mixed(nothing, number < 0 ? below : above, share);
  };
}

/** Return where colours end: nearly the largest size, so that one outlier does not hide the rest. */
function limitOf(...arrays) {
  const sizes = arrays.flatMap((array) => Array.from(array, Math.abs)).sort((a, b) => a - b);
  return sizes[Math.floor(0.985 * (sizes.length - 1))] || sizes.at(-1) || 1;
}

/** A token's name, the signs of white space in it faint. */
const named = (name) => [...name.matchAll(/[▁↵⇥]+|[^▁↵⇥]+/g)].map(([part]) =>
  /[▁↵⇥]/.test(part) ? el("span", { class: "mark" }, part) : part);

let count = 0;
const unique = (word) => `${word}-${++count}`;

/** A row of choices, of which one is taken: native radio buttons, so arrow keys work. */
function choices(legend, names, chosen, choose, { shown = false } = {}) {
  const group = unique("choice");
  const buttons = names.map((name, i) => el("label", { class: "chip" },
    el("input", {
      type: "radio", name: group, value: i, checked: i === chosen,
      onchange: () => choose(i),
    }),
    el("span", {}, ...named(name))));
  return el("fieldset", { class: "choices" },
    el("legend", { class: shown ? "" : "quiet" }, legend), ...buttons);
}

/** A stepper: one number among so many, by two buttons or from a list. */
function stepper(word, at, of, go) {
  const move = (by) => () => go((at + by + of) % of);
  const list = el("select", { "aria-label": word, onchange: () => go(Number(list.value)) },
    ...Array.from({ length: of }, (_, i) => el("option", { value: i, selected: i === at }, `${word} ${i + 1}`)));
  const button = (sign, by, what) => el("button", {
    type: "button", class: "step", "aria-label": `${what} ${word}`, onclick: move(by), disabled: of < 2,
  }, sign);
  return el("div", { class: "stepper", role: "group", "aria-label": word },
    button("‹", -1, "previous"), list, `of ${of}`, button("›", 1, "next"));
}

/** Let arrow keys move the focus among elements, of which one alone is a stop of the tab key. */
function roving(elements, { columns = 1, chosen = 0, focus = () => {}, vertical = 1 } = {}) {
  elements.forEach((element, i) => {
    element.tabIndex = i === chosen ? 0 : -1;
    element.addEventListener("focus", () => {
      elements.forEach((other) => { other.tabIndex = other === element ? 0 : -1; });
      focus(i);
    });
    element.addEventListener("keydown", (event) => {
      const steps = {
        ArrowRight: columns > 1 ? 1 : 0, ArrowLeft: columns > 1 ? -1 : 0,
        ArrowDown: columns * vertical, ArrowUp: -columns * vertical,
        Home: -i, End: elements.length - 1 - i,
      };
      const next = i + steps[event.key];
      if (!steps[event.key] || !elements[next]) return;
      event.preventDefault();
      elements[next].focus();
    });
  });
}
