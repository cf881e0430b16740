// Returns the texts of the page that have less contrast than WCAG's level AA asks for.
(() => {
  const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const colour = (text) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = text;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return { r, g, b, a: a / 255 };
  };
  const over = (top, below) => ({
    r: top.r * top.a + below.r * (1 - top.a), g: top.g * top.a + below.g * (1 - top.a), b: top.b * top.a + below.b * (1 - top.a), a: 1,
  });
  const ground = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(colour(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), { r: 255, g: 255, b: 255, a: 1 });
  };
  const part = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const light = (c) => 0.2126 * part(c.r) + 0.7152 * part(c.g) + 0.0722 * part(c.b);
  const wrong = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walk.nextNode()) {
    const text = walk.currentNode.data.trim(), e = walk.currentNode.parentElement;
    if (!text || e.closest('.spoken, script, noscript, option') || !e.checkVisibility()) continue;
    seen++;
    const style = getComputedStyle(e), below = ground(e);
    const above = over(colour(e instanceof SVGElement ? style.fill : style.color), below);
    const [a, b] = [light(above), light(below)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05), size = parseFloat(style.fontSize);
    const enough = size >= 24 || size >= 18.66 && +style.fontWeight >= 700 ? 3 : 4.5;
    if (ratio < enough) wrong.add(`"${text.slice(0, 30)}" has a contrast of ${ratio.toFixed(2)}, less than ${enough}`);
  }
  if (seen < 10) wrong.add(`the page has only ${seen} texts`);
  return [...wrong];
})()
