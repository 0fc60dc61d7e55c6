// The third view: the ten likeliest next tokens, and what every layer would have said.

const SHOWN = 10;
const next = { row: null, temperature: 1, k: null, p: 1, drawn: null, level: null };

/** Return each kept token's probability, and how many may be drawn, by torch's own order of cuts. */
function distribution(version, row, { temperature, k, p }) {
  const { vocab, tokens, at, rest } = data.versions[version].next;
  const count = tokens[row].length, offsets = take(at + row * count, count);
  const masses = Array.from(offsets, (offset) => Math.exp(offset / temperature));
  // the tokens that were not kept one by one, by the middle of their bin
  let left = 0;
  if (rest) {
    const width = (rest.most[row] - rest.least[row]) / rest.bins;
    const found = take(rest.at + row * rest.bins, rest.bins);
    found.forEach((size, bin) => { left += size * Math.exp((rest.least[row] + (bin + 0.5) * width) / temperature); });
  }
  const cut = Math.min(k ?? vocab, vocab);
  if (cut < vocab) left = 0;
  let total = masses.slice(0, cut).reduce((sum, mass) => sum + mass, 0) + left;
  // top-p keeps the likeliest tokens until together they have p
  let allowed = 0, sum = 0;
  while (allowed < Math.min(cut, count) && (allowed === 0 || sum < p * total - 1e-9)) sum += masses[allowed++];
  const open = sum < p * total - 1e-9;
  if (!open && p < 1) total = sum;
  const shares = masses.map((mass, i) => (i < allowed ? mass / total : 0));
  return { shares, plain: masses, allowed: open ? Math.round(Math.max(allowed, vocab * (p >= 1 ? 1 : 0))) || allowed : allowed, open: open && p < 1, cut };
}

function nextView(root) {
  const [version] = data.versions;
  if (!version.next) {
    root.replaceChildren(el("p", { class: "lead" }, "This model describes a sentence and writes none: it has no output layer, so there is no next token to ask for."));
    return;
  }
  const column = version.columns.at(-1), { vocab } = version.next;
  next.row ??= column.tokens.length - 1;
  const bars = el("div", { class: "pictures" });
  const update = () => bars.replaceChildren(...data.versions.map((_, v) => barsOf(v)));
  const slider = (name, low, high, step, value, words, set) => {
    const out = el("output", {}, words(value));
    const input = el("input", { type: "range", min: low, max: high, step, value, "aria-label": name, "aria-valuetext": words(value),
      oninput: () => {
        const number = Number(input.value);
        out.textContent = words(number);
        input.setAttribute("aria-valuetext", words(number));
        set(number);
        next.drawn = null;
        update();
      } });
    return el("label", { class: "slider" }, el("span", {}, name), out, input);
  };
  const most = Math.min(vocab, version.next.tokens[0].length);
  const expected = version.next.expected[next.row];
  const lens = el("div", { class: "lens-room" });
  update();
  root.replaceChildren(
    el("p", { class: "lead" }, "What the model would write next. Move the sliders: a low temperature sharpens the choice, top-k and top-p leave out the unlikely tokens."),
    choices("after which token?", column.tokens, next.row, (row) => {
      next.row = row; next.drawn = null; nextView(root); root.querySelector(".choices input:checked").focus();
    }, { shown: true }),
    el("div", { class: "two next" },
      el("div", { class: "sliders" },
        slider("temperature", 0.1, 2, 0.05, next.temperature, (t) => t.toFixed(2), (t) => { next.temperature = t; }),
        slider("top-k", 1, most, 1, next.k ?? most, (k) => (k >= most ? "all" : `${k}`), (k) => { next.k = k >= most ? null : k; }),
        slider("top-p", 0.05, 1, 0.05, next.p, (p) => (p >= 1 ? "all" : p.toFixed(2)), (p) => { next.p = p; }),
        el("button", { type: "button", class: "draw", onclick: () => { next.drawn = draw(); update(); } }, "Draw a token"),
        expected === undefined ? null : el("p", { class: "note" }, data.written ? "What it wrote here: " : "What the sentence says here: ", el("code", {}, ...named(expected)))),
      bars),
    lens);
  data.versions.forEach((one, v) => one.lens && lens.append(lensOf(v, root)));
}

function draw() {
  const { shares } = distribution(0, next.row, next), total = shares.reduce((a, b) => a + b, 0);
  let at = Math.random() * total, i = 0;
  while (i < shares.length - 1 && (at -= shares[i]) > 0) i++;
  return i;
}

/** Draw the ten best as bars, which are a table for those who cannot see them. */
function barsOf(v) {
  const { next: found, name } = data.versions[v];
  const { shares, allowed, open } = distribution(v, next.row, next);
  const names = found.tokens[next.row];
  const rows = Array.from({ length: Math.min(SHOWN, names.length) }, (_, i) => i);
  if (v === 0 && next.drawn !== null && next.drawn >= SHOWN) rows.push(next.drawn);
  const many = open ? `More than ${allowed}` : allowed >= found.tokens[0].length && next.p >= 1 && next.k === null ? `All ${found.vocab.toLocaleString("en")}` : `${allowed} of ${found.vocab.toLocaleString("en")}`;
  const drawn = v === 0 && next.drawn !== null ? ` Drawn: ${found.names[names[next.drawn]]}.` : "";
  return el("figure", {},
    data.versions.length > 1 ? el("figcaption", {}, name) : null,
    el("table", { class: "bars" },
      el("thead", { class: "quiet" }, el("tr", {}, el("th", { scope: "col" }, "token"), el("th", { scope: "col" }, "probability"), el("th", { scope: "col" }, "as a bar"))),
      el("tbody", {}, ...rows.map((i) => el("tr", { class: [shares[i] ? "" : "out", v === 0 && i === next.drawn ? "drawn" : ""].join(" ") },
        el("th", { scope: "row" }, ...named(found.names[names[i]])),
        el("td", {}, shares[i] ? percent(shares[i]) : "left out"),
        el("td", { class: "track" }, el("i", { style: `width:${(100 * shares[i]).toFixed(2)}%` })))))),
    el("p", { class: "note", "aria-live": "polite" }, `${many} tokens can be drawn.${drawn}`));
}

/** The logit lens: a row for each level, the last on top; a column for each token. */
function lensOf(v, root) {
  const { lens, columns, name } = data.versions[v], tokens = columns.at(-1).tokens;
  const nearest = lens.tokens[0][0].length;
  const shares = take(lens.at, lens.levels.length * tokens.length * nearest);
  const best = (level, row) => lens.tokens[level][row].map((token, i) =>
    [lens.names[token], shares[(level * tokens.length + row) * nearest + i]]);
  const readout = el("p", { class: "readout", "aria-live": "polite" }, "Choose a cell: you see the five best of that layer.");
  const cells = [], rows = [];
  const tell = (level, row) => {
    readout.replaceChildren(el("strong", {}, `${lens.levels[level]}, after “${tokens[row]}”: `),
      best(level, row).map(([word, share]) => `${word} ${percent(share)}`).join(" · "));
  };
  for (let level = lens.levels.length - 1; level >= 0; level--) {
    rows.push(el("tr", {}, el("th", { scope: "row" }, lens.levels[level]), ...tokens.map((_, row) => {
      const [word, share] = best(level, row)[0];
      const cell = el("td", { role: "gridcell", class: row === next.row ? "here" : "", style: `--share:${share.toFixed(3)}`,
        onpointerenter: () => tell(level, row), onclick: () => cell.focus() }, ...named(word));
      cells.push(cell);
      return cell;
    })));
  }
  roving(cells, { columns: tokens.length, focus: (i) =>
    tell(lens.levels.length - 1 - Math.floor(i / tokens.length), i % tokens.length) });
  return el("section", { class: "lens", "aria-label": `logit lens: ${name}` },
    el("h2", {}, "What every layer would have said", name && data.versions.length > 1 ? ` (${name})` : ""),
    el("p", { class: "note" }, "The logit lens: the last norm and the output layer, applied to the state after each block. The stronger the colour, the more certain; the top row is the model's own answer."),
    readout,
    el("div", { class: "scroll" }, el("table", { role: "grid", "aria-label": `${name}: the best next token by layer and position` },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "after"), ...tokens.map((token, row) => el("th", { scope: "col", class: row === next.row ? "here" : "" }, ...named(token))))),
      el("tbody", {}, ...rows))));
}
