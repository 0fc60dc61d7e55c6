// A tensor as a heat map: colours for the eye, one number for the pointer or the arrow keys, and a
// table for those who read rather than see.

const ROW = 19, GAP = 5;

/**
 * Draw numbers of (heads, rows, columns), heads side by side.
 * `rows` and `columns` are names; `signed` numbers have a colour for each sign.
 */
function heatMap({ title, values, kept, rows, columns, signed, limit, heads = true }) {
  const [groups, height, width] = kept;
  const readout = el("p", { class: "readout", "aria-live": "polite" });
  const canvas = el("canvas", {
    tabindex: 0, role: "application", "aria-roledescription": "heat map",
    "aria-label": `${title}: ${height} rows, ${groups * width} columns. Arrow keys read numbers.`,
  });
  const names = el("div", { class: "row-names", "aria-hidden": "true" },
    ...rows.map((name) => el("span", {}, ...named(name))));
  const above = el("div", { class: "column-names", "aria-hidden": "true" });
  if (groups > 1 && heads) {
    for (let g = 0; g < groups; g++) above.append(el("span", {}, groups > 6 ? `${g + 1}` : `head ${g + 1}`));
  } else if (columns && width <= 40) {
    const longest = Math.max(...columns.map((name) => name.length));
    if (longest > 2) {
      above.classList.add("slanted");
      above.style.height = `${Math.min(70, 12 + 5.5 * longest)}px`;
    }
    for (const name of columns) above.append(el("span", {}, ...named(name)));
  }
  let at = null;
  const value = (row, column) => {
    const g = Math.floor(column / width);
    return values[(g * height + row) * width + column % width];
  };
  let left = () => 0, cell = 1;

  function draw() {
    const space = canvas.parentElement ? canvas.parentElement.clientWidth : 0;
    if (!space) return;
    const gaps = (groups - 1) * GAP;
    cell = Math.max(1.5, Math.min(columns ? 34 : 14, (space - gaps) / (groups * width)));
    left = (column) => column * cell + Math.floor(column / width) * GAP;
    const ratio = window.devicePixelRatio || 1;
    const wide = Math.ceil(left(groups * width - 1) + cell);
    canvas.style.width = `${wide}px`;
    above.style.width = `${wide}px`;
    canvas.style.height = `${height * ROW}px`;
    canvas.width = wide * ratio;
    canvas.height = height * ROW * ratio;
    const pen = canvas.getContext("2d"), tint = scale(limit, signed);
    pen.scale(ratio, ratio);
    const edge = cell > 5 ? 1 : 0;
    for (let row = 0; row < height; row++) {
      for (let column = 0; column < groups * width; column++) {
        pen.fillStyle = `rgb(${tint(value(row, column))})`;
        pen.fillRect(left(column), row * ROW, cell - edge, ROW - 1);
      }
    }
    if (at) {
      pen.strokeStyle = getComputedStyle(canvas).color;
      pen.lineWidth = 2;
      pen.strokeRect(left(at[1]) - 1, at[0] * ROW - 1, cell + 2, ROW + 1);
    }
  }

  function name(column) {
    if (columns) return `“${columns[column]}”`;
    const place = `column ${column % width + 1}`;
    return groups > 1 ? `head ${Math.floor(column / width) + 1}, ${place}` : place;
  }
  function point(row, column) {
    at = [Math.max(0, Math.min(height - 1, row)), Math.max(0, Math.min(groups * width - 1, column))];
    readout.replaceChildren(`“${rows[at[0]]}”, ${name(at[1])}: `,
      el("strong", {}, said(value(...at))));
    draw();
  }
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left;
    let column = 0;
    while (column < groups * width - 1 && left(column + 1) <= x) column++;
    point(Math.floor((event.clientY - box.top) / ROW), column);
  });
  canvas.addEventListener("focus", () => point(...(at || [0, 0])));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    point(at[0] + step[0], at[1] + step[1]);
  });
  readout.textContent = "Point at a cell, or use the arrow keys.";
  const frame = el("div", { class: "cells" }, above, canvas);
  const map = el("div", { class: "heat-map" }, el("div", { class: "map" }, names, frame), legend(limit, signed), readout);
  redrawn(frame, draw);
  return map;
}

/** What is drawn, and where: drawn again when the width or the theme changes, while it is there. */
const drawings = new Map();
const redrawAll = () => drawings.forEach((draw, element) =>
  (element.isConnected ? draw() : drawings.delete(element)));
const widths = new ResizeObserver((changed) => changed.forEach(({ target }) => {
  if (target.isConnected) drawings.get(target)?.();
  else { drawings.delete(target); widths.unobserve(target); }
}));
function redrawn(element, draw) {
  drawings.set(element, draw);
  widths.observe(element);
}

function legend(limit, signed) {
  const least = signed ? `−${said(limit)}` : "0";
  return el("div", { class: "legend", "aria-hidden": "true" },
    el("span", {}, least), el("i", { class: signed ? "ramp signed" : "ramp" }), el("span", {}, said(limit)));
}

/** The same numbers as a table, made only when it is opened. */
function asTable(summary, head, rows) {
  const details = el("details", { class: "as-table" }, el("summary", {}, summary));
  details.addEventListener("toggle", () => {
    if (!details.open || details.querySelector("table")) return;
    const table = el("table", {},
      el("thead", {}, el("tr", {}, ...head.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, ...rows().map(([name, ...cells]) => el("tr", {},
        el("th", { scope: "row" }, name), ...cells.map((one) => el("td", {}, one))))));
    details.append(el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": summary }, table));
  });
  return details;
}
