// What is wider than its place scrolls. So that keys scroll it too, it takes the focus.
const WIDE = "pre, .table-wrapper, .cell_output, math[display=block], .text_html [style*=overflow]";
const reach = () => {
  for (const part of document.querySelectorAll(WIDE))
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
};
addEventListener("load", reach);
addEventListener("resize", reach);
addEventListener("toggle", reach, true); // what was folded had no width

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
