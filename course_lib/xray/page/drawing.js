// The model as a drawing, from below: a column for each stack, a button for each box.

/** Return the boxes of a column with one of its blocks, from below. */
function boxesOf(column, block) {
  return { before: column.before, block: column.blocks[block] || [], after: column.after };
}

/**
 * Draw a version of the model. `chosen` is a box's place, `choose(place)` takes another;
 * `changes`, where two versions are compared, says by how much each stage differs.
 */
function drawing(version, blocks, chosen, choose, turnTo, changes) {
  const buttons = [], stacks = [];
  version.columns.forEach((column, number) => {
    const parts = boxesOf(column, blocks[number]), rooms = {};
    for (const [room, boxes] of Object.entries(parts)) {
      rooms[room] = boxes.map(([label, role, keys], i) => {
        const place = [number, room, i];
        const shape = version.stages[keys.at(-1)].shape;
        const change = changes && Math.max(0, ...keys.map((key) => changes[key] ?? 0));
        const button = el("button", {
          type: "button", class: "box", "data-role": role, "aria-pressed": `${place.join() === chosen.join()}`,
          onclick: () => choose(place),
        }, label, changes ? el("span", { class: "change" }, change ? `± ${percent(Math.min(change, 9.99))}` : "same") : null);
        buttons.push(button);
        return el("li", {}, button, up(shape));
      });
    }
    const of = column.blocks.length;
    const states = version.stages[parts.block.at(-1)[2].at(-1)].shape;
    const frame = el("li", {}, el("div", { class: "frame" },
      el("ol", { class: "boxes" }, ...rooms.block),
      stepper("block", blocks[number], of, (block) => turnTo(number, block))), up(states));
    const ends = el("li", { class: "tokens" },
      el("span", {}, `${column.tokens.length} tokens`));
    stacks.push(el("div", { class: version.columns.length > 1 && number === 0 ? "stack left" : "stack" },
      el("ol", { class: "boxes", "aria-label": column.name || "the model, from its input up" },
        ends, ...rooms.before, frame, ...rooms.after),
      column.name ? el("p", { class: "stack-name" }, column.name) : null));
  });
  const place = buttons.findIndex((button) => button.getAttribute("aria-pressed") === "true");
  roving(buttons, { chosen: Math.max(0, place), vertical: -1 });
  const lines = el("svg", { class: "lines", "aria-hidden": "true" });
  const whole = el("div", { class: version.columns.length > 1 ? "drawing pair" : "drawing" }, lines, ...stacks);
  redrawn(whole, () => connect(whole, lines));
  return whole;
}

/** An arrow to the next box, and the shape of what goes along it. */
function up(shape) {
  return el("span", { class: "up", "aria-hidden": "true" }, el("span", {}, shape.slice(-2).join(" × ")));
}

/** The tip of an arrow that comes in from a side. */
const tip = (x, y, side) => `M${x + side * 7} ${y - 3.5} L${x + side} ${y} L${x + side * 7} ${y + 3.5}`;

/** Draw residual connections, and the way of the memory into the cross-attention. */
function connect(whole, lines) {
  const frame = whole.getBoundingClientRect();
  if (!frame.width) return;
  const ways = [];
  const box = (element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return { left: left - frame.left, right: right - frame.left, top: top - frame.top, bottom: bottom - frame.top };
  };
  const middle = (one) => (one.top + one.bottom) / 2;
  const stacks = [...whole.querySelectorAll(".stack")];
  stacks.forEach((stack, number) => {
    const boxes = [...stack.querySelectorAll(".frame .box")];
    const inner = stacks.length > 1 && number === 0 ? -1 : 1;
    const block = box(stack.querySelector(".frame")), bottom = box(boxes[0]);
    ways.push(`M${(bottom.left + bottom.right) / 2} ${block.bottom} V${bottom.bottom}`);
    boxes.forEach((button, i) => {
      const label = button.firstChild.textContent;
      if (!label.startsWith("add")) return;
      const first = box(boxes[label === "add" ? i - 2 : i - 1]), to = box(button);
      const side = inner > 0 ? to.right : to.left, out = side + inner * 11;
      const centre = (first.left + first.right) / 2, y = first.bottom + 6;
      ways.push(`M${centre} ${y} H${out} V${middle(to)} H${side + inner * 2}`, tip(side, middle(to), inner));
    });
  });
  const across = stacks[1] && [...stacks[1].querySelectorAll(".box")]
    .filter((button) => button.textContent.startsWith("cross"));
  let memory = "";
  if (across && across.length) {
    const boxes = [...stacks[0].querySelectorAll(".box")], top = box(boxes.at(-1));
    const to = box(across[0]), centre = (top.left + top.right) / 2;
    const frameTop = box(stacks[0].querySelector(".frame")).top;
    const y = Math.min(top.top - 16, frameTop - 12), x = (top.right + to.left) / 2;
    memory = `M${centre} ${top.top - 15} V${y} H${x} V${middle(to)} H${to.left - 2} ${tip(to.left, middle(to), -1)}`;
  }
  lines.replaceChildren(
    ...ways.map((d) => el("path", { d, class: "residual" })),
    ...(memory ? [el("path", { d: memory, class: "memory" })] : []));
}
