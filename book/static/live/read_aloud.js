// Lesson 02's model reads a word: which letters it looks at for each sound, and which it needs.
import { pronouncer } from "./data.js";
import { button, h, number, set, wait } from "./dom.js";
import { argmax } from "./maths.js";

const WORDS = ["phonograph", "attention", "knight", "through"];
const [PAUSE, LONGEST, KEPT] = [350, 20, 4];
// ARPAbet, by the words with which CMUdict explains it
const AS_IN = Object.fromEntries(
  (
    "AA odd AE at AH hut AO ought AW cow AY hide B be CH cheese D dee DH thee EH Ed ER hurt EY ate " +
    "F fee G green HH he IH it IY eat JH gee K key L lee M me N knee NG ping OW oat OY toy P pee " +
    "R read S sea SH she T tea TH theta UH hood UW two V vee W we Y yield Z zee ZH seizure"
  )
    .match(/\w+ \w+/g)
    .map(pair => pair.split(" ")),
);

export default async function readAloud() {
  const model = await pronouncer();
  const alphabet = model.letters.filter(x => x.length === 1);
  let [word, reading, chosen, turn] = ["", [], 0, 0];
  const readings = []; // the last ones, for comparison

  const field = h("input", {
    value: WORDS[0],
    maxlength: LONGEST,
    pattern: "[A-Za-z]+",
    required: true,
    autocapitalize: "none",
    autocomplete: "off",
    spellcheck: "false",
    title: "letters from a to z",
  });
  const form = h(
    "form",
    { onsubmit: event => (event.preventDefault(), read(field.value.toLowerCase())) },
    h("label", {}, "A word ", field),
    h("button", {}, "Read it"),
    WORDS.map(x => button(x, () => read((field.value = x)), { class: "quiet" })),
  );
  const letters = h("div", { class: "letters", role: "group", "aria-label": "Letters" });
  const sounds = h("div", { class: "sounds", role: "group", "aria-label": "Sounds" });
  const said = h("p", { class: "said", "aria-live": "polite" });
  const earlier = h("ol", { class: "readings", "aria-label": "Readings so far" });

  async function read(next) {
    const mine = ++turn;
    [word, reading, chosen] = [next, [], 0];
    spell();
    sounds.replaceChildren();
    said.textContent = "";
    for (const step of model.pronounce(word)) {
      reading.push({ ...step, drops: [] });
      sounds.append(chip(reading.length - 1));
      light(reading.length - 1);
      await wait(PAUSE);
      if (mine !== turn) return;
    }
    compare();
    choose(0);
    const tokens = reading.map(step => step.token);
    for (let j = 0; j < word.length; j++) {
      await new Promise(requestAnimationFrame); // the page stays awake meanwhile
      if (mine !== turn) return;
      model.drops(word, tokens, j).forEach((drop, i) => (reading[i].drops[j] = drop));
      light(chosen);
    }
    choose(chosen);
  }

  // a letter is a list of all letters: choose another one, and the word is read anew
  function spell() {
    letters.replaceChildren(
      ...[...word].map((letter, j) => {
        const others = alphabet.map(x => h("option", { selected: x === letter }, x));
        const change = event => {
          read((field.value = word.slice(0, j) + event.target.value + word.slice(j + 1)));
          letters.children[j].querySelector("select").focus(); // the list is a new one
        };
        const label = `Letter ${j + 1} of ${word.length}`;
        const list = h("select", { "aria-label": label, onchange: change }, others);
        return h("span", {}, h("i", { class: "weight" }), list, h("i", { class: "drop" }));
      }),
      h("span", {}, h("i", { class: "weight" }), h("b", { title: "the end of the word" }, "·")),
    );
  }

  function chip(i) {
    const { sound, p } = reading[i];
    const spoken = AS_IN[sound.replace(/\d/, "")];
    return button(
      [h("b", {}, sound), h("small", {}, spoken ? `as in ${spoken}` : "of the word")],
      () => choose(i),
      { "aria-pressed": "false", "--p": p, onpointerenter: () => reading.length > i && light(i) },
    );
  }

  function light(i) {
    const { weights, drops } = reading[i];
    [...letters.children].forEach((column, j) =>
      set(column, { "--weight": weights[j], "--drop": Math.max(0, drops[j] ?? 0) }),
    );
    [...sounds.children].forEach((x, at) => x.setAttribute("aria-pressed", at === i));
  }

  function choose(i) {
    chosen = i;
    light(i);
    const { sound, p, weights, drops } = reading[i];
    const at = argmax(weights);
    const looks = at < word.length ? `${word[at]} (letter ${at + 1})` : "the end of the word";
    const needs = [...drops.keys()].filter(j => drops[j] > 0.3).sort((a, b) => drops[b] - drops[a]);
    const named = needs.map(j => `${word[j]} (−${number(drops[j])})`).join(", ");
    const name = sound === "end" ? "The end" : sound;
    said.textContent =
      `${name} has probability ${number(p)}. Most weight, ${number(weights[at])}, is on ${looks}. ` +
      (drops.length < word.length
        ? "Trying other letters …"
        : named
          ? `The probability falls with another letter in place of ${named}.`
          : "No single letter costs it more than 0.3.");
  }

  // what differs from the reading before is marked
  function compare() {
    const now = reading.slice(0, -1).map(step => step.sound);
    const before = readings[0]?.now ?? now;
    let [begin, end] = [0, 0];
    while (begin < now.length && now[begin] === before[begin]) begin++;
    while (end < now.length - begin && now.at(-1 - end) === before.at(-1 - end)) end++;
    const shown = now.map((sound, i) =>
      i >= begin && i < now.length - end ? h("mark", {}, sound) : sound,
    );
    const line = h(
      "li",
      {},
      h("b", {}, word),
      " ",
      shown.flatMap(x => [x, " "]),
    );
    readings.unshift({ now, line });
    readings.length = Math.min(readings.length, KEPT);
    earlier.replaceChildren(...readings.map(x => x.line));
  }

  sounds.addEventListener("pointerleave", () => reading[chosen] && light(chosen));
  read(WORDS[0]);
  return [
    form,
    h(
      "div",
      { class: "reading" },
      letters,
      h(
        "p",
        { class: "key" },
        h("span", { class: "weight" }, "weight: where it looks"),
        h("span", { class: "drop" }, "drop: what it needs"),
        h("span", {}, "Change a letter: it is a list."),
      ),
    ),
    sounds,
    said,
    earlier,
  ];
}
