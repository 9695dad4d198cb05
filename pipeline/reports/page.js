// The page: its panels in their places, its tools, and the spectrum.
class Spectrum {
  constructor(figure, spec) {
    Object.assign(this, { figure, spec });
    element(element(figure, "figcaption"), "span", "title", spec.title);
    Object.assign(this, canvasPair(figure, spec.title));
    this.above.addEventListener("pointermove", (event) => {
      const k = Math.round((event.offsetX - 64) / this.step - 0.5);
      if (k < 0 || k >= spec.values.length) {
        hideTip();
        return;
      }
      const rows = [["eigenvalue", String(k + 1)], ["μ", spec.values[k].toPrecision(4)]];
      if (k < spec.residuals.length) rows.push(["residual", spec.residuals[k].toExponential(1)]);
      showTip(event, rows);
    });
    this.above.addEventListener("pointerleave", hideTip);
  }

  draw() {
    const { values, kept } = this.spec;
    const width = this.box.clientWidth;
    const height = 200;
    this.box.style.height = `${height}px`;
    const pen = prepared(this.below, width, height);
    prepared(this.above, width, height);
    const high = height - 46;
    const top = Math.max(1, ...values);
    const low = Math.min(0, ...values);
    const y = (value) => 8 + high * (1 - (value - low) / (top - low));
    this.step = Math.min(64, (width - 76) / values.length);
    pen.strokeStyle = GRID;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const [at, step] of stepped(ticks(low, top, 4))) {
      stroke(pen, 64, y(at), 64 + this.step * values.length, y(at));
      pen.fillStyle = INK;
      pen.fillText(text(at, step), 57, y(at));
    }
    values.forEach((value, k) => {
      const x = 64 + this.step * (k + 0.5);
      pen.strokeStyle = k < kept ? "#0072B2" : "#B8B8B8";
      pen.fillStyle = pen.strokeStyle;
      pen.lineWidth = 2;
      stroke(pen, x, y(0), x, y(value));
      pen.beginPath();
      pen.arc(x, y(value), 4.5, 0, 7);
      pen.fill();
      if (values.length <= 12 || k % 5 === 4) {
        pen.fillStyle = INK;
        pen.textAlign = "center";
        pen.textBaseline = "top";
        pen.fillText(String(k + 1), x, height - 34);
      }
    });
    this.gap(pen, y);
    pen.fillStyle = FAINT;
    pen.textAlign = "center";
    pen.fillText("number of the eigenvalue", 64 + (this.step * values.length) / 2, height - 16);
    sideways(pen, "eigenvalue μ", 10, 8 + high / 2, high);
  }

  gap(pen, y) {
    const { values } = this.spec;
    if (values.length < 2) return;
    let best = 0;
    for (let k = 1; k + 1 < values.length; k += 1) if (values[k] - values[k + 1] > values[best] - values[best + 1]) best = k;
    const x = 64 + this.step * (best + 1);
    pen.strokeStyle = "#D55E00";
    pen.lineWidth = 1.5;
    stroke(pen, x, y(values[best]), x, y(values[best + 1]));
    pen.fillStyle = "#D55E00";
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.fillText(`gap ${(values[best] - values[best + 1]).toPrecision(2)}`, x + 5, y(values[best]) + 2);
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
  coloured = content.points.colourings.length > 1 ? 1 : 0;
  for (const section of document.querySelectorAll("section")) {
    const figures = [...section.querySelectorAll("figure")];
    const timed = figures.filter((one) => ["lines", "image", "strip"].includes(content.panels[one.dataset.panel].kind));
    for (const figure of figures) {
      const spec = content.panels[figure.dataset.panel];
      if (spec.kind === "spectrum") plain.push(new Spectrum(figure, spec));
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
