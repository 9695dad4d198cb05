// A panel: a title, a canvas for what is drawn and one above it for what follows the pointer.
const INK = "#222222";
const FAINT = "#8a8a8a";
const GRID = "#e6e6e6";
const FONT = '12px system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif';

function element(parent, name, kind, words) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (words !== undefined) made.textContent = words;
  if (parent) parent.append(made);
  return made;
}

const tip = element(document.body, "div", "tip");
tip.setAttribute("role", "status");
tip.hidden = true;

function showTip(event, rows) {
  tip.replaceChildren();
  for (const [name, value, colour] of rows) {
    const row = element(tip, "div");
    if (colour) element(row, "i").style.background = colour;
    element(row, "span", "", name);
    element(row, "b", "", value);
  }
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = event.clientX + 16 + box.width > window.innerWidth ? event.clientX - box.width - 16 : event.clientX + 16;
  const top = Math.min(event.clientY + 16, window.innerHeight - box.height - 4);
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

function hideTip() {
  tip.hidden = true;
}

function canvasPair(figure, words) {
  const box = element(figure, "div", "box");
  const below = element(box, "canvas");
  const above = element(box, "canvas", "above");
  below.setAttribute("role", "img");
  below.setAttribute("aria-label", words);
  above.tabIndex = 0;
  above.setAttribute("aria-label", words);
  return { box, below, above };
}

// Sizes a canvas for its place and the screen, and clears it.
function prepared(canvas, width, height) {
  const dots = Math.max(window.devicePixelRatio || 1, 1.5);
  canvas.width = Math.round(width * dots);
  canvas.height = Math.round(height * dots);
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(dots, 0, 0, dots, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = FONT;
  return pen;
}

// Words, cut to a width.
function fitted(pen, words, width) {
  if (pen.measureText(words).width <= width) return words;
  let kept = words;
  while (kept.length > 1 && pen.measureText(`${kept}…`).width > width) kept = kept.slice(0, -1);
  return `${kept}…`;
}

function sideways(pen, words, x, y, length) {
  pen.save();
  pen.translate(x, y);
  pen.rotate(-Math.PI / 2);
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(fitted(pen, words, length), 0, 0);
  pen.restore();
}

function legend(parent, entries) {
  const list = element(parent, "ul", "legend");
  for (const [name, colour] of entries) {
    const item = element(list, "li");
    element(item, "i").style.background = colour;
    element(item, "span", "", name);
  }
  return list;
}

function colourBar(parent, low, high, name) {
  const bar = element(parent, "div", "bar");
  element(bar, "span", "", low);
  const ramp = element(bar, "canvas");
  ramp.width = 256;
  ramp.height = 1;
  const pen = ramp.getContext("2d");
  SHADE_TEXTS.forEach((shade, k) => {
    pen.fillStyle = shade;
    pen.fillRect(k, 0, 1, 1);
  });
  element(bar, "span", "", high);
  element(bar, "span", "of", name);
}
