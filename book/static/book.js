// What is wider than the page scrolls; so that a keyboard scrolls it too, it takes the focus.
addEventListener("load", () => {
  for (const part of document.querySelectorAll("pre, .table-wrapper, math[display=block], .output"))
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
});
