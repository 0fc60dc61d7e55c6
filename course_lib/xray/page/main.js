// The page: three views as tabs, the theme of the page around it, and a frame as high as its content.

const VIEWS = { Stages: stagesView, Attention: attentionView, "Next token": nextView };

function main() {
  const root = document.getElementById("xray");
  const names = Object.keys(VIEWS), panels = {}, tabs = [];
  const open = (i) => {
    names.forEach((name, j) => {
      tabs[j].setAttribute("aria-selected", `${i === j}`);
      panels[name].hidden = i !== j;
      if (i !== j) panels[name].replaceChildren();
    });
    VIEWS[names[i]](panels[names[i]]);
  };
  for (const [i, name] of names.entries()) {
    const id = unique("tab"), room = unique("room");
    tabs.push(el("button", { type: "button", role: "tab", id, "aria-controls": room, onclick: () => open(i) }, name));
    panels[name] = el("div", { role: "tabpanel", id: room, "aria-labelledby": id });
  }
  roving(tabs, { columns: 3, focus: (i) => { if (tabs[i].getAttribute("aria-selected") !== "true") open(i); } });
  root.append(
    el("header", {},
      el("h1", {}, `X-ray of ${data.title}`),
      el("p", { class: "sentence" }, "reads ", el("q", {}, data.sentence),
        ...(data.written ? [" and writes ", el("q", {}, data.written)] : [])),
      el("div", { class: "tabs", role: "tablist", "aria-label": "views" }, ...tabs)),
    ...Object.values(panels));
  open(0);
}

/** Take the theme of the page around this one, where it has one; otherwise the system's. */
function followTheme() {
  let host;
  try { host = window.parent !== window ? window.parent.document : null; } catch { host = null; }
  const read = () => {
    const { documentElement: page, body } = host;
    const lab = body?.dataset.jpThemeLight, book = page.dataset.theme || body?.dataset.theme;
    const code = body?.className.match(/vscode-(dark|light|high-contrast)/)?.[1];
    const theme = lab ? (lab === "true" ? "light" : "dark") : ["light", "dark"].includes(book) ? book
      : code ? (code === "light" ? "light" : "dark") : "";
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    redrawAll();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  if (!host) return;
  read();
  for (const watched of [host.documentElement, host.body]) {
    if (watched) new MutationObserver(read).observe(watched, { attributes: true });
  }
}

/** Make the frame that holds this page as high as what it shows. */
function fitFrame() {
  let frame;
  try { frame = window.frameElement; } catch { frame = null; }
  if (!frame) return;
  new ResizeObserver(() => { frame.style.height = `${document.getElementById("xray").offsetHeight + 4}px`; })
    .observe(document.getElementById("xray"));
}

followTheme();
main();
fitFrame();
