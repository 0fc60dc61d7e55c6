// The second view: who looks at whom, by layer and head.

const attention = { kind: 0, at: null, row: null };

function attentionView(root) {
  for (const element of drawings.keys()) if (!element.isConnected) drawings.delete(element);
  const all = data.versions[0].attentions;
  if (!all.length) {
    root.replaceChildren(el("p", { class: "lead" }, "This model's layers do not average values by weights, so there are none to show."));
    return;
  }
  const stackName = (one) => data.versions[0].columns[one.query].name;
  const title = (one) => [stackName(one), one.kind].filter(Boolean).join(": ");
  const kinds = [...new Set(all.map(title))];
  if (!attention.at) {
    const best = all.findIndex((one) => one.aligns);
    const first = best >= 0 ? all[best] : all.findLast((one) => one.kind === "cross-attention") || all[0];
    attention.kind = kinds.indexOf(title(first));
    attention.at = [all.filter((one) => title(one) === title(first)).indexOf(first), 0];
  }
  const layers = all.filter((one) => title(one) === kinds[attention.kind]);
  attention.at[0] = Math.min(attention.at[0], layers.length - 1);
  const [layer, head] = attention.at, one = layers[layer];
  const heads = weightsOf(0, one.key).heads;
  const again = (change, focus) => { change(); attentionView(root); if (focus) root.querySelector(focus)?.focus(); };
  const pictures = data.versions.map((version, v) => version.stages[one.key]
    ? figureOf(v, one, head) : el("p", {}, `${version.name}: has no such layer`));
  root.replaceChildren(
    el("p", { class: "lead" }, "Each token on the left looks at tokens on the right: the thicker the line, the larger the weight. Point at a token, or choose another head."),
    kinds.length > 1 ? choices("which attention", kinds, attention.kind,
      (kind) => again(() => { attention.kind = kind; attention.at = [0, 0]; attention.row = null; }, ".choices input:checked")) : "",
    el("div", { class: layers.length > 12 ? "attention wide" : "attention" },
      el("div", { class: "looking" },
        el("div", { class: "steppers" },
          stepper("block", layer, layers.length, (to) => again(() => { attention.at = [to, head]; }, '[aria-label="next block"]')),
          stepper("head", head, heads, (to) => again(() => { attention.at = [layer, to]; }, '[aria-label="next head"]'))),
        el("p", { class: "note", "aria-live": "polite" }, habit(0, one, head)),
        el("div", { class: "pictures" }, ...pictures)),
      glance(layers, heads, (to) => again(() => { attention.at = to; }, ".thumb[aria-checked=true]"))));
}

function weightsOf(version, key) {
  const stage = data.versions[version].stages[key], [heads, rows, columns] = stage.kept;
  return { values: take(stage.at, heads * rows * columns), heads, rows, columns };
}

function headOf(version, key, head) {
  const { values, rows, columns } = weightsOf(version, key);
  return { values: values.subarray(head * rows * columns, (head + 1) * rows * columns), rows, columns };
}

/** Say in a sentence where most of a head's weight goes. */
function habit(version, one, head) {
  const { values, rows, columns } = headOf(version, one.key, head), self = one.query === one.keys;
  const share = (place) => {
    let sum = 0, count = 0;
    for (let row = 0; row < rows; row++) {
      const column = place(row);
      if (column < 0 || column >= columns) continue;
      sum += values[row * columns + column];
      count++;
    }
    return count ? sum / count : 0;
  };
  const places = {
    "the first token": () => 0, "the same position": (row) => row,
    ...(self ? { "the token before": (row) => row - 1, "the token after": (row) => row + 1 } : { "the mirrored position": (row) => columns - 1 - row }),
    "the last token": () => columns - 1,
  };
  const found = Object.entries(places).map(([name, place]) => [share(place), name]).sort((a, b) => b[0] - a[0])[0];
  const trained = one.aligns && head === 0 ? "This head was trained to align words. " : "";
  if (found[0] > 0.4) return `${trained}On average ${percent(found[0])} of this head's weight goes to ${found[1]}.`;
  let peaks = 0;
  for (let row = 0; row < rows; row++) peaks += Math.max(...values.subarray(row * columns, (row + 1) * columns)) / rows;
  return trained + (peaks > 0.6 ? `On average a token gives ${percent(peaks)} of its weight to a single token, at no fixed place.`
    : "This head spreads its weight over several tokens.");
}

/** Draw the lines of one head, from the tokens that look to the tokens that are looked at. */
function figureOf(version, one, head) {
  // cross-attention serves the token that is being written, so that one names the row
  const writes = one.query !== one.keys && data.versions[version].next?.expected;
  const queries = writes || data.versions[version].columns[one.query].tokens;
  const keys = data.versions[version].columns[one.keys].tokens;
  const { values, rows, columns } = headOf(version, one.key, head);
  const lines = el("svg", { class: "lines", "aria-hidden": "true" });
  const left = queries.map((name, row) => {
    const best = [...values.subarray(row * columns, (row + 1) * columns)]
      .map((weight, column) => [weight, column]).sort((a, b) => b[0] - a[0]).slice(0, 3);
    const spoken = best.map(([weight, column]) => `${keys[column]} ${percent(weight)}`).join(", ");
    return el("li", { role: "option", "aria-selected": "false", "aria-label": `${name} looks at ${spoken}`,
      onpointerenter: () => light(row), onclick: () => light(row) }, ...named(name));
  });
  const right = keys.map((name) => el("li", {}, el("b", {}), el("span", {}, ...named(name))));
  const whole = el("div", { class: "bipartite" },
    el("ul", { role: "listbox", "aria-label": "tokens that look", class: "queries" }, ...left), lines,
    el("ul", { class: "keys", "aria-label": "tokens that are looked at" }, ...right));
  roving(left, { chosen: attention.row ?? 0, focus: light });
  whole.addEventListener("pointerleave", () => { if (!whole.contains(document.activeElement)) light(null); });

  function light(row) {
    attention.row = row;
    left.forEach((item, i) => item.setAttribute("aria-selected", `${i === row}`));
    right.forEach((item, column) => {
      const weight = row === null ? 0 : values[row * columns + column];
      item.style.setProperty("--share", weight);
      item.firstChild.textContent = row === null ? "" : percent(weight);
    });
    draw();
  }
  function draw() {
    const frame = lines.getBoundingClientRect();
    if (!frame.width) return;
    const y = (item) => { const box = item.getBoundingClientRect(); return (box.top + box.bottom) / 2 - frame.top; };
    const made = [];
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const weight = values[row * columns + column];
        if (weight < 0.02) continue;
        const dim = attention.row !== null && attention.row !== row;
        const from = y(left[row]), to = y(right[column]), bend = frame.width / 2;
        made.push(el("path", {
          d: `M0 ${from} C${bend} ${from} ${bend} ${to} ${frame.width} ${to}`,
          "stroke-width": (0.5 + 4.5 * weight).toFixed(2), "stroke-opacity": (dim ? 0.06 : 0.15 + 0.85 * weight).toFixed(2),
        }));
      }
    }
    lines.replaceChildren(...made);
  }
  redrawn(whole, draw);
  const off = values.every((weight) => weight === 0);
  if (attention.row !== null && attention.row < rows) requestAnimationFrame(() => light(attention.row));
  else attention.row = null;
  return el("figure", {}, data.versions.length > 1 ? el("figcaption", {}, data.versions[version].name) : null,
    off ? el("p", { class: "note" }, "This head is off: all of its weights are 0.") : null,
    el("div", { class: "sides", "aria-hidden": "true" }, el("span", {}, writes ? "while it writes" : "looks"), el("span", {}, "is looked at")), whole,
    asTable("The weights as a table", ["token", ...keys], () => queries.map((name, row) =>
      [name, ...[...values.subarray(row * columns, (row + 1) * columns)].map((weight) => weight.toFixed(2))])));
}

/** All heads of all blocks at a glance; one of them is taken by pointing or by the arrow keys. */
function glance(layers, heads, take) {
  const chosen = attention.at[0] + attention.at[1] * layers.length, thumbs = [];
  const grid = el("div", { class: "glance", role: "radiogroup", "aria-label": "all heads: a column for each block, a row for each head" });
  grid.style.setProperty("--columns", layers.length);
  for (let head = 0; head < heads; head++) {
    for (let layer = 0; layer < layers.length; layer++) {
      const canvas = el("canvas", { "aria-hidden": "true" });
      const thumb = el("button", {
        type: "button", class: "thumb", role: "radio", "aria-checked": `${thumbs.length === chosen}`,
        "aria-label": `block ${layer + 1}, head ${head + 1}`, title: `block ${layer + 1}, head ${head + 1}`,
        onclick: () => take([layer, head]),
      }, canvas);
      thumbs.push(thumb);
      const { values, rows, columns } = headOf(0, layers[layer].key, head);
      const draw = () => {
        canvas.width = columns; canvas.height = rows;
        const pen = canvas.getContext("2d"), image = pen.createImageData(columns, rows), tint = scale(1, false);
        for (let i = 0; i < rows * columns; i++) image.data.set([...tint(values[i]), 255], 4 * i);
        pen.putImageData(image, 0, 0);
      };
      draw();
      drawings.set(canvas, draw);
      grid.append(thumb);
    }
  }
  roving(thumbs, { columns: layers.length, chosen });
  return el("section", { class: "all", "aria-label": "all heads at a glance" },
    el("h2", {}, "All heads at a glance"),
    el("p", { class: "note" }, layers.length > 1 ? "A column for each block, a row for each head; in each picture a row for each token that looks." : "A row for each head; in each picture a row for each token that looks."),
    grid);
}
