// What is wider than its place scrolls. So that keys scroll it too, it takes the focus; an edge
// that fades says that there is more.
const WIDE =
  "pre, .table-wrapper, .cell_output, .formula, math[display=block], .text_html [style*=overflow]";
const more = part =>
  part.classList.toggle("more", part.scrollWidth - part.clientWidth - part.scrollLeft > 2);
const reach = () => {
  for (const part of document.querySelectorAll(WIDE)) {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
    more(part);
  }
};
addEventListener("load", reach);
addEventListener("resize", reach);
addEventListener("toggle", reach, true); // what was folded had no width
addEventListener("scroll", event => event.target.matches?.(WIDE) && more(event.target), true);

// Guesses and choices stay in this browser, where it keeps anything.
const keep = (key, value) => {
  try {
    if (value !== undefined) localStorage.setItem(`course:${key}`, value);
    return localStorage.getItem(`course:${key}`);
  } catch {
    return value ?? null;
  }
};

// A page that is a file loads no module: its live parts say so, as they do without scripts.
for (const place of document.querySelectorAll(".live"))
  if (location.protocol === "file:")
    place.innerHTML = place.querySelector("noscript").textContent;

// A prediction: what was measured, and the pictures of it, are hidden until the reader has guessed,
// or will not.
const NOTHING = "Measured: ";
const outputs = [...document.querySelectorAll(".cell_output pre")];
for (const form of document.querySelectorAll("form.guess")) {
  const after = pre => form.compareDocumentPosition(pre) & Node.DOCUMENT_POSITION_FOLLOWING;
  const told = outputs.find(pre => after(pre) && pre.textContent.includes(NOTHING));
  if (!told) continue;
  const measured = told.textContent;
  const [field, [, skip]] = [form.querySelector("input"), form.querySelectorAll("button")];
  const cells = [told.closest(".cell")];
  for (let next; (next = cells.at(-1).nextElementSibling)?.matches(".cell"); ) cells.push(next);
  const show = guess => {
    if (guess) told.textContent = measured.replace(NOTHING, () => `You said ${guess}; measured: `);
    for (const cell of cells) cell.hidden = false;
    skip.hidden = true;
    reach();
  };
  form.hidden = false;
  for (const cell of cells) cell.hidden = true;
  field.value = keep(form.dataset.key) ?? "";
  if (field.value) show(field.value);
  form.addEventListener("submit", event => {
    event.preventDefault();
    const guess = field.value.trim();
    if (guess) show(keep(form.dataset.key, guess));
    else field.focus();
  });
  skip.addEventListener("click", () => show());
}

// A wrong answer: the panel is hidden until the reader has chosen what is wrong, or will not.
for (const form of document.querySelectorAll("form.why")) {
  const panel = form.nextElementSibling;
  const [skip, ...choices] = [...form.querySelectorAll("button")].reverse();
  const show = chosen => {
    for (const choice of choices) {
      choice.ariaPressed = choice === chosen;
      choice.classList.toggle("right", "yes" in choice.dataset);
      choice.classList.toggle("not", choice === chosen && "no" in choice.dataset);
    }
    panel.hidden = false;
    skip.hidden = true;
    reach();
  };
  form.hidden = false;
  panel.hidden = true;
  const before = choices[keep(form.dataset.key) ?? -1];
  if (before) show(before);
  choices.forEach((choice, at) =>
    choice.addEventListener("click", () => {
      keep(form.dataset.key, at);
      show(choice);
    }),
  );
  skip.addEventListener("click", () => show());
}

// An explorer has the colours that the reader has chosen for the page.
const colour = () => {
  for (const frame of document.querySelectorAll("iframe"))
    frame.contentDocument?.documentElement?.setAttribute("data-theme", document.body.dataset.theme);
};
document.addEventListener("load", colour, true); // of each frame
new MutationObserver(colour).observe(document.documentElement, {
  attributeFilter: ["data-theme"],
  subtree: true,
});
