// The texts of a panel that are hard to read: each with its contrast to what is behind it, where
// that is below 4.5 (WCAG 1.4.3), or below 3 for a sign of one character (1.4.11).
panel => {
  const parse = colour => colour.match(/[\d.]+/g).map(Number);
  const over = (front, back, alpha) => front.map((x, i) => alpha * x + (1 - alpha) * back[i]);
  const luminance = colour => {
    const [r, g, b] = colour.map(x => {
      x /= 255;
      return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    for (; element; element = element.parentElement) {
      const [r, g, b, alpha = 1] = parse(getComputedStyle(element).backgroundColor);
      if (alpha === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const found = [];
  const texts = document.createTreeWalker(panel, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.textContent.trim();
    const element = texts.currentNode.parentElement;
    if (!text || !element.checkVisibility()) continue;
    let opacity = 1;
    for (let x = element; x; x = x.parentElement) opacity *= getComputedStyle(x).opacity;
    const paper = behind(element);
    const ink = over(parse(getComputedStyle(element).color).slice(0, 3), paper, opacity);
    const [dark, light] = [luminance(ink), luminance(paper)].sort((a, b) => a - b);
    const contrast = (light + 0.05) / (dark + 0.05);
    if (contrast < (text.length === 1 ? 3 : 4.5)) found.push(`${text}: ${contrast.toFixed(2)}`);
  }
  return found;
}
