// Lesson 10's model writes, beside the table of counts; parts of it can be switched off.
import { counts, languageModel } from "./data.js";
import { button, calm, h, number, set, slider } from "./dom.js";
import { distribution, draw } from "./language_model.js";

const [BEGIN, PAUSE, ROWS, LONGEST] = ["ROMEO:\n", 40, 8, 1200];
const visible = { " ": "␣", "\n": "↵" };

export default async function writer() {
  const place = h("div");
  const ask = button("Load the model and let it write (4.6 MB)", async () => {
    if (ask.hasAttribute("aria-disabled")) return; // it loads already; a button that is disabled would lose the focus
    set(ask, { "aria-disabled": "true" });
    ask.textContent = "Loading …";
    try {
      const [model, table] = await Promise.all([languageModel(), counts()]);
      const focused = document.activeElement === ask;
      place.replaceChildren(...desk(model, table));
      if (focused) place.querySelector("button[type=button]").focus();
    } catch (problem) {
      ask.textContent = `The model could not be loaded (${problem.message}). Try again`;
      set(ask, { "aria-disabled": false });
    }
  });
  place.append(ask);
  return [place];
}

function desk(model, table) {
  let [text, temperature, p, writing, looking] = [BEGIN, 0.8, 1, null, null];
  const off = new Set();
  const counted = table.loss(model.passage);
  let [whole, asked] = [null, 0];

  const shown = h("div", { class: "text", tabindex: "0", role: "group", "aria-label": "The text" });
  const status = h("p", { class: "hidden", "aria-live": "polite" }); // a line at a time
  const field = h("input", { value: BEGIN.trim(), maxlength: 60, spellcheck: "false" });
  const go = button("", () => (writing ? pause() : write()));
  const author = h("select", {}, h("option", {}, "the model"), h("option", {}, "the counts"));
  const controls = [
    slider("Temperature", { min: 0.1, max: 2, step: 0.1, value: temperature }, x => {
      temperature = x;
      ahead();
    }),
    slider("Top-p", { min: 0.05, max: 1, step: 0.05, value: p, shown: x => number(x) }, x => {
      p = x;
      ahead();
    }),
  ];
  const next = h("tbody");
  const loss = h("p", { class: "loss", "aria-live": "polite" });

  const byModel = () => distribution(model.after(text), temperature, p);
  const byCounts = () => distribution(table.after(text).map(Math.log), temperature, p);

  function step() {
    const drawn = draw(author.selectedIndex ? byCounts() : byModel());
    text += model.vocab[drawn];
    if (text.endsWith("\n")) status.textContent = text.trimEnd().split("\n").at(-1);
    if (text.length > LONGEST) pause();
    page();
    ahead();
  }

  function write() {
    if (text.length > LONGEST) text = start();
    writing = setInterval(step, calm.matches ? 10 * PAUSE : PAUSE);
    go.textContent = "Pause";
  }

  function pause() {
    clearInterval(writing);
    writing = null;
    go.textContent = "Write";
  }

  const start = () => [...`${field.value}\n`].filter(x => model.vocab.includes(x)).join("");

  function anew() {
    text = start();
    page();
    ahead();
  }

  // the text; what the model sees of it is lit by the head that is pointed at
  function page() {
    model.after(text);
    const seen = text.slice(-model.read.length);
    const weights = looking && model.weights[looking.layer][looking.head];
    const most = weights && Math.max(...weights);
    shown.replaceChildren(
      h("span", { class: "gone" }, text.slice(0, -seen.length)),
      ...(weights
        ? [...seen].map((x, i) =>
            h("span", { "--weight": weights[i] / most, class: "lit" }, x === "\n" ? "↵\n" : x),
          )
        : [seen]),
      h("span", { class: "caret", "aria-hidden": "true" }),
    );
    shown.scrollTop = shown.scrollHeight;
  }

  // the likeliest next characters, by the model and by the counts
  function ahead() {
    const [own, counted] = [byModel(), byCounts()];
    const order = [...own.keys()].sort((a, b) => own[b] - own[a] || counted[b] - counted[a]);
    next.replaceChildren(
      ...order.slice(0, ROWS).map(token => {
        const character = model.vocab[token];
        const cell = (x, kind) => h("td", { class: kind, "--p": x }, x ? number(x) : "cut");
        const name = { " ": "space", "\n": "new line" }[character] ?? character;
        return h(
          "tr",
          {},
          h("th", { scope: "row", "aria-label": name }, visible[character] ?? character),
          cell(own[token], "model"),
          cell(counted[token], "counts"),
        );
      }),
    );
  }

  function part(name, label, short, where) {
    const look = () => {
      looking = where ?? null;
      page();
    };
    const leave = () => {
      looking = null;
      page();
    };
    const toggle = event => {
      const now = off.delete(name) || !off.add(name);
      set(event.currentTarget, { "aria-pressed": String(now) });
      model.without(off);
      judge();
      page();
      ahead();
    };
    const seen = where && {
      onpointerenter: look,
      onpointerleave: leave,
      onfocus: look,
      onblur: leave,
    };
    return button(short, toggle, { "aria-pressed": "true", "aria-label": label, ...seen });
  }

  // what the parts that are off cost
  async function judge() {
    const mine = ++asked;
    loss.textContent = "Measuring its loss …";
    const now = await model.loss(model.passage, () => mine !== asked);
    if (now === null) return;
    if (!off.size) whole = now;
    loss.textContent =
      `On ${model.passage.length - 1} characters of Shakespeare that neither has read, the model loses ` +
      `${number(now)} nats a character${whole && off.size ? `, with all parts on ${number(whole)}` : ""}; ` +
      `the counts lose ${number(counted)}.`;
  }

  const parts = model.blocks.map((_, layer) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, `layer ${layer + 1}`),
      h("td", {}, part(`norm ${layer} 0`, `Layer ${layer + 1}, norm before attention`, "norm")),
      Array.from({ length: model.heads }, (_, head) => {
        const label = `Layer ${layer + 1}, head ${head + 1}`;
        return h("td", {}, part(`head ${layer} ${head}`, label, head + 1, { layer, head }));
      }),
      h("td", {}, part(`norm ${layer} 1`, `Layer ${layer + 1}, norm before the network`, "norm")),
    ),
  );
  parts.push(
    h(
      "tr",
      {},
      h("th", { scope: "row" }, "output"),
      h("td", { colspan: 6 }, part("norm last", "Last norm", "last norm")),
    ),
  );

  author.addEventListener("change", ahead);
  judge();
  anew();
  write();
  return [
    h(
      "form",
      { onsubmit: event => (event.preventDefault(), anew()) },
      h("label", {}, "Begin with ", field),
      h("button", {}, "Start anew"),
      go,
      button("One character", () => (pause(), step())),
      h("label", {}, "Written by ", author),
    ),
    h(
      "div",
      { class: "desk" },
      h(
        "div",
        {},
        shown,
        controls.map(x => x.element),
        loss,
      ),
      h("div", {}, candidates(next), anatomy(model, parts)),
    ),
    status,
  ];
}

const column = text => h("th", { scope: "col" }, text);

const candidates = rows =>
  h(
    "table",
    { class: "next" },
    h("caption", {}, "The next character"),
    h("thead", {}, h("tr", {}, h("td"), column("the model"), column("the counts"))),
    rows,
  );

const anatomy = (model, rows) =>
  h(
    "table",
    { class: "parts" },
    h("caption", {}, "Point at a head: where does it look? Press a part: it is off."),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("td", { colspan: 2 }),
        h("th", { colspan: model.heads, scope: "colgroup" }, "heads"),
        h("td"),
      ),
    ),
    h("tbody", {}, rows),
  );
