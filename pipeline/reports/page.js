// The page: its panels in their places, its tools, and bars such as eigenvalues.
class Stems {
  constructor(figure, spec) {
    Object.assign(this, { figure, spec });
    element(element(figure, "figcaption"), "span", "title", spec.title);
    Object.assign(this, canvasPair(figure, spec.title));
    this.above.addEventListener("pointermove", (event) => {
      const k = Math.floor((event.offsetX - 64) / this.step);
      if (k < 0 || k >= spec.values.length) hideTip();
      else showTip(event, [["number", String(k + 1)], [spec.y, spec.values[k].toPrecision(4)]]);
    });
    this.above.addEventListener("pointerleave", hideTip);
  }

  draw() {
    const { spec } = this;
    this.width = this.box.clientWidth;
    if (!(this.width > 80)) return;
    this.high = 150;
    this.box.style.height = `${this.high + 50}px`;
    const pen = prepared(this.below, this.width, this.high + 50);
    prepared(this.above, this.width, this.high + 50);
    this.step = Math.min(56, (this.width - 76) / spec.values.length);
    this.bounds();
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const [value, words] of this.ticks()) {
      pen.strokeStyle = GRID;
      stroke(pen, 64, this.y(value), 64 + this.step * spec.values.length, this.y(value));
      pen.fillStyle = INK;
      pen.fillText(words, 57, this.y(value));
    }
    spec.values.forEach((value, k) => this.stem(pen, value, k));
    if (spec.gap !== undefined) this.gap(pen, spec.gap);
    pen.fillStyle = FAINT;
    pen.textAlign = "center";
    pen.textBaseline = "top";
    pen.fillText(spec.x, 64 + (this.step * spec.values.length) / 2, this.high + 32);
    sideways(pen, spec.y, 8, this.high / 2, this.high);
  }

  bounds() {
    const { values, log } = this.spec;
    if (!log) {
      this.ends = [Math.min(0, ...values), Math.max(...values, 1e-12) * 1.12];
      return;
    }
    const found = values.filter((value) => value > 0).map(Math.log10);
    this.ends = found.length ? [Math.floor(Math.min(...found) - 0.3), Math.ceil(Math.max(...found) + 0.3)] : [-1, 0];
  }

  ticks() {
    const [low, high] = this.ends;
    if (!this.spec.log) return stepped(ticks(low, high, 4)).map(([value, step]) => [value, text(value, step)]);
    const step = Math.max(1, Math.ceil((high - low) / 4));
    const found = [];
    for (let k = Math.ceil(low / step) * step; k <= high; k += step) found.push([10 ** k, `1e${k}`.replace("-", "−")]);
    return found;
  }

  y(value) {
    const [low, high] = this.ends;
    const at = this.spec.log ? Math.log10(Math.max(value, 10 ** low)) : value;
    return 8 + (this.high - 8) * (1 - (at - low) / (high - low));
  }

  stem(pen, value, k) {
    const { kept, values } = this.spec;
    const x = 64 + this.step * (k + 0.5);
    pen.strokeStyle = k < kept ? "#0072B2" : "#B8B8B8";
    pen.fillStyle = pen.strokeStyle;
    pen.lineWidth = 2;
    if (!this.spec.log) stroke(pen, x, this.y(0), x, this.y(value));
    pen.beginPath();
    pen.arc(x, this.y(value), 4.5, 0, 7);
    pen.fill();
    pen.lineWidth = 1;
    if (values.length <= 12 || k % 5 === 4) {
      pen.fillStyle = INK;
      pen.textAlign = "center";
      pen.textBaseline = "top";
      pen.fillText(String(k + 1), x, this.high + 12);
    }
  }

  gap(pen, k) {
    const { values } = this.spec;
    const x = 64 + this.step * (k + 1);
    const [top, bottom] = [this.y(values[k]), this.y(values[k + 1])];
    pen.strokeStyle = "#D55E00";
    pen.fillStyle = "#D55E00";
    pen.lineWidth = 1.5;
    stroke(pen, x, top, x, bottom);
    stroke(pen, x - 4, top, x + 4, top);
    stroke(pen, x - 4, bottom, x + 4, bottom);
    pen.textAlign = "left";
    pen.textBaseline = "bottom";
    pen.fillText(`gap ${(values[k] - values[k + 1]).toPrecision(2)}`, x + 7, top + 6);
  }
}

function choice(parent, name, options, chosen, changed) {
  const holder = element(parent, "label", "", name);
  const select = element(holder, "select");
  options.forEach((words, k) => {
    const option = element(select, "option", "", words);
    option.value = String(k);
    option.selected = k === chosen;
  });
  select.addEventListener("change", () => changed(Number(select.value)));
}

function button(parent, words, name, pressed) {
  const made = element(parent, "button", "", words);
  made.type = "button";
  made.title = name;
  made.setAttribute("aria-label", name);
  made.addEventListener("click", pressed);
}

function tools() {
  const parent = document.getElementById("tools");
  const group = element(parent, "div");
  button(group, "whole", "Show the whole recording", () => setView(...whole));
  button(group, "−", "Zoom out", () => zoom(2));
  button(group, "+", "Zoom in", () => zoom(0.5));
  button(group, "◀", "Earlier", () => shift(-0.5));
  button(group, "▶", "Later", () => shift(0.5));
  const names = content.points.colourings.map((one) => one.name);
  const right = element(parent, "div");
  choice(right, "colour", names, coloured, (k) => {
    coloured = k;
    key();
    maps.forEach((map) => map.draw());
  });
  const columns = content.estimates.observer.names;
  ["x", "y", "z"].forEach((name, k) => {
    choice(right, name, columns.map((_, j) => String(j + 1)), axis({ estimate: "observer" }, k), (j) => {
      axes[k] = j;
      maps.forEach((map) => map.draw());
    });
  });
}

// What the colours of the maps mean.
function key() {
  const place = document.getElementById("key");
  if (!place) return;
  place.replaceChildren();
  const by = colouring();
  if (by.codes !== undefined) {
    element(place, "span", "title", by.name);
    legend(place, by.classes.map(([name, , colour]) => [name, colour]));
    return;
  }
  const timed = by.name === "time" || by.name === "frame";
  const [low, high] = timed ? range(array(by.values)) : mostOf(array(by.values));
  const words = timed ? timeText : short;
  colourBar(place, words(low), words(high), by.units && !timed ? `${by.name} (${by.units})` : by.name);
}

function start() {
  axes = [0, 1, 2];
  coloured = content.points.first;
  for (const section of document.querySelectorAll("section")) {
    const figures = [...section.querySelectorAll("figure")];
    const timed = figures.filter((one) => ["lines", "image", "strip"].includes(content.panels[one.dataset.panel].kind));
    for (const figure of figures) {
      const spec = content.panels[figure.dataset.panel];
      if (spec.kind === "stems") plain.push(new Stems(figure, spec));
      else if (spec.kind === "map2" || spec.kind === "map3") maps.push(new DotMap(figure, spec));
      else timePanels.push(new TimePanel(figure, spec, figure === timed[timed.length - 1]));
    }
    const first = section.querySelector("figure.map3");
    if (first) {
      const place = element(null, "div", "key");
      place.id = "key";
      first.parentElement.before(place);
    }
  }
  const ends = timePanels.map((panel) => panel.bounds());
  whole = ends.length ? [Math.min(...ends.map((end) => end[0])), Math.max(...ends.map((end) => end[1]))] : range(shownTimes());
  if (!(whole[1] > whole[0])) whole = [whole[0] - 0.5, whole[0] + 0.5];
  tools();
  key();
  watchers.push(() => maps.forEach((map) => (map.seen === view ? map.over() : ((map.seen = view), map.draw()))));
  setView(...whole);
  plain.forEach((one) => one.draw());
}

function all() {
  timePanels.forEach((panel) => panel.draw());
  maps.forEach((map) => map.draw());
  plain.forEach((one) => one.draw());
}

const plain = [];
start();
window.addEventListener("resize", () => requestAnimationFrame(all));
window.addEventListener("beforeprint", all);
document.documentElement.dataset.ready = "true";
