// What is wider than its place scrolls. So that keys scroll it too, it takes the focus.
const WIDE = "pre, .table-wrapper, .cell_output, math[display=block]";
const reach = () => {
  for (const part of document.querySelectorAll(WIDE))
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
};
addEventListener("load", reach);
addEventListener("resize", reach);
addEventListener("toggle", reach, true); // what was folded had no width
