// The first view: choose a box of the drawing, and see its tensors, its formula and its code.

const stages = {
  blocks: data.versions[0].columns.map(() => 0),
  chosen: null,
  part: null,
  head: 0,
};

function stagesView(root) {
  const [version] = data.versions, compared = data.versions.length > 1;
  stages.chosen ||= [version.columns.length - 1, "block",
    Math.max(0, version.columns.at(-1).blocks[0].findIndex(([label]) => label.includes("attention")))];
  const [number, room, i] = stages.chosen;
  const column = version.columns[number], block = stages.blocks[number];
  const boxes = boxesOf(column, block)[room], [label, role, keys] = boxes[Math.min(i, boxes.length - 1)];
  // where two versions are compared, begin with the first tensor that differs
  stages.part ??= Math.max(0, keys.findIndex((key) => data.changes[key]));
  stages.part = Math.min(stages.part, keys.length - 1);
  const again = (change, focus) => { change(); stagesView(root); root.querySelector(focus)?.focus(); };
  const picture = drawing(version, stages.blocks, stages.chosen,
    (place) => again(() => { if (place.join() !== stages.chosen.join()) stages.part = null; stages.chosen = place; },
      ".box[aria-pressed=true]"),
    (stack, to) => {
      const step = document.activeElement?.getAttribute("aria-label");
      again(() => { stages.blocks[stack] = to; if (stages.chosen[1] !== "block") stages.chosen = [stack, "block", 1]; },
        `.stack:nth-of-type(${stack + 1}) [aria-label="${step}"]`);
    },
    compared ? data.changes : null);
  const where = room === "block" ? `block ${block + 1} of ${column.blocks.length}` : "";
  const heading = [column.name, where].filter(Boolean).join(", ");
  const panel = el("section", { class: "panel", "aria-label": "what this box computed" },
    el("h2", { "data-role": role }, label, el("small", {}, heading)),
    keys.length > 1 ? choices("inside this box", keys.map((key) => partName(version, key)), stages.part, (part) =>
      again(() => { stages.part = part; }, ".panel .choices input:checked")) : null,
    ...tensorOf(keys[stages.part], column, again));
  const old = root.querySelector(".drawing-room")?.scrollTop;
  root.replaceChildren(
    el("p", { class: "lead" }, compared
      ? "Two versions read the same sentence. Each box says by how much what it returned differs. Choose one."
      : "The model, from its input up. Choose a box: you see the numbers that it returned, its formula, and the code that computed them."),
    el("div", { class: "two" }, el("div", { class: "drawing-room" }, picture), panel));
  if (old) root.querySelector(".drawing-room").scrollTop = old;
}

/** Name a tensor inside a box; where two versions are compared, with how much it differs. */
function partName(version, key) {
  const change = data.changes[key];
  return version.stages[key].label + (change === undefined ? "" : change ? ` ± ${percent(Math.min(change, 9.99))}` : change === 0 ? " same" : "");
}

/** Describe one stage: formula, heat maps, code. */
function tensorOf(key, column, again) {
  const found = data.versions.map((version) => version.stages[key]);
  const [stage, other] = found;
  const { math, words } = data.formulas[stage.formula];
  const square = stage.label === "weights";
  const heads = stage.kept.length === 3 ? stage.kept[0] : 1;
  const rows = rowsOf(key, column);
  stages.head = Math.min(stages.head, heads - 1);
  const views = found.map((one) => one && viewOf(one, square));
  const alike = other && other.kept.join() === stage.kept.join();
  const limit = square ? 1 : limitOf(...views.filter(Boolean).map((view) => view.values));
  const maps = views.map((view, i) => view ? mapOf(view, rows, stage, limit, !square,
    data.versions.length > 1 ? data.versions[i].name : stage.label) : el("p", {}, `${data.versions[i].name}: has no such stage`));
  const difference = alike && views[0].values.map((x, i) => views[1].values[i] - x);
  if (alike && difference.some((x) => x)) {
    maps.push(mapOf({ ...views[0], values: difference }, rows, stage, square ? 1 : limitOf(difference), true, "difference"));
  }
  const parts = [
    el("div", { class: "formula" }, el("div", { html: math }), el("p", {}, words)),
    el("p", { class: "shape" }, ...shapeOf(stage, square)),
  ];
  if (square && heads > 1) {
    parts.push(choices("head", Array.from({ length: heads }, (_, h) => `${h + 1}`), stages.head,
      (head) => again(() => { stages.head = head; }, ".panel .heads input:checked"), { shown: true }));
    parts.at(-1).classList.add("heads");
  }
  parts.push(el("div", { class: "maps" }, ...maps));
  if (data.changes[key] !== undefined) {
    const change = data.changes[key];
    parts.push(el("p", { class: "note" }, change === null ? "There is no difference to show: only one version has this stage, or the two shapes differ."
      : change ? `The whole tensor differs by ${percent(change)} of its size.` : "The two versions are the same here."));
  }
  const names = square ? keysOf(key) : stage.columns;
  const [, height, width] = [1, ...stage.kept].slice(-3);
  parts.push(asTable("The numbers as a table", ["token", ...Array.from({ length: views[0].kept[0] * width }, (_, i) => names ? names[i % width] : `${i + 1}`)],
    () => rows.slice(0, height).map((row, r) => [row, ...Array.from({ length: views[0].kept[0] * width }, (_, c) =>
      said(views[0].values[(Math.floor(c / width) * height + r) * width + c % width]))])));
  parts.push(...codeOf(stage));
  if (other && other.source !== stage.source) parts.push(...codeOf(other, data.versions[1].name));
  return parts;

  function mapOf(view, names, stage, limit, signed, title) {
    return el("figure", {}, data.versions.length > 1 ? el("figcaption", {}, title) : null,
      heatMap({ title, values: view.values, kept: view.kept, rows: names, columns: square ? keysOf(key) : stage.columns, signed, limit }));
  }
  function viewOf(one, square) {
    const kept = one.kept.length === 3 ? one.kept : [1, ...one.kept];
    const values = take(one.at, kept[0] * kept[1] * kept[2]);
    if (!square) return { values, kept };
    const size = kept[1] * kept[2];
    return { values: values.subarray(stages.head * size, (stages.head + 1) * size), kept: [1, kept[1], kept[2]] };
  }
}

/** Name the rows of a stage: keys and values of cross-attention are the source's. */
function rowsOf(key, column) {
  const across = /cross_attention\/(keys|values)$/.test(key);
  if (key.endsWith("after/mean")) return ["sentence"];
  return across ? data.versions[0].columns[0].tokens : column.tokens;
}

function keysOf(key) {
  const one = data.versions[0].attentions.find((attention) => attention.key === key);
  return data.versions[0].columns[one.keys].tokens;
}

function shapeOf(stage, square) {
  const [heads, rows, columns] = stage.shape.length === 3 ? stage.shape : [1, ...stage.shape];
  const shape = el("strong", {}, stage.shape.join(" × "));
  const text = heads > 1 ? ` ${heads} heads × ${rows} tokens × ${columns}` : ` ${rows} ${rows > 1 ? "tokens" : "row"} × ${columns}`;
  const kept = stage.kept.at(-1);
  const note = stage.columns && kept < columns ? `; the ${kept} likeliest tokens are shown`
    : kept < columns && !square ? `; the first ${kept} of ${columns} columns ${heads > 1 ? "of each head " : ""}are shown` : "";
  return [shape, text.replace(/^.*$/, ` = ${text.trim()}`), note];
}

/** Show the function that computed a stage, and whose it is. */
function codeOf(stage, version = "") {
  const source = data.sources[stage.source];
  return [el("h3", { class: "by" }, "Computed by ", el("code", {}, source.name), " ",
    ownerOf(source), version ? ` (${version})` : ""),
  sourceOf(source), stage.caller === undefined ? null : callOf(stage)];
}

const ownerOf = ({ owner }) => el("span", { class: owner === "yours" ? "owner own" : "owner" }, owner.replace("'", "’"));

const sourceOf = (source, line = "") => el("pre", {
  tabindex: 0, role: "region", "aria-label": `source of ${source.name}`, html: painted(source.text, line),
});

/** Show the line that called this function, and folded below it the function around it. */
function callOf(stage) {
  const source = data.sources[stage.caller];
  return el("details", { class: "calls" },
    el("summary", {}, "Called in ", el("code", {}, source.name), " ", ownerOf(source), " by ", el("code", {}, stage.line)),
    sourceOf(source, stage.line));
}

/** Colour comments, texts and keywords of Python, and mark the line that made the call. */
function painted(text, line = "") {
  const escape = (plain) => plain.replace(/[&<>]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign]);
  const token = /("""[\s\S]*?"""|"[^"\n]*"|'[^'\n]*')|(#[^\n]*)|\b(def|class|return|if|else|elif|for|in|is|not|and|or|None|True|False|raise|with|lambda|import|from|as)\b/g;
  let html = "", from = 0;
  for (const match of text.matchAll(token)) {
    const kind = match[1] ? "text" : match[2] ? "remark" : "word";
    html += `${escape(text.slice(from, match.index))}<span class="${kind}">${escape(match[0])}</span>`;
    from = match.index + match[0].length;
  }
  html += escape(text.slice(from));
  const at = line ? text.split("\n").findIndex((one) => one.trim() === line) : -1;
  return at < 0 ? html : html.split("\n").map((one, i) => (i === at ? `<span class="called">${one}</span>` : one)).join("\n");
}
