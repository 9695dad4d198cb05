// Panels over time. All of them show the same stretch, and the same moment under the pointer.
const LEFT = 64;
const RIGHT = 12;
const timePanels = [];
let whole = [0, 1];
let view = [0, 1];
let moment = null;
const watchers = [];

function setView(low, high) {
  const least = Math.max((whole[1] - whole[0]) / 1e6, 1e-9);
  const span = Math.min(Math.max(high - low, least), whole[1] - whole[0]);
  const begin = Math.min(Math.max(low, whole[0]), whole[1] - span);
  view = [begin, begin + span];
  document.documentElement.dataset.view = view.join(" ");
  redraw();
}

function setMoment(time) {
  moment = time;
  timePanels.forEach((panel) => panel.over());
  watchers.forEach((watcher) => watcher());
}

let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    timePanels.forEach((panel) => panel.draw());
    watchers.forEach((watcher) => watcher());
  });
}

class TimePanel {
  constructor(figure, spec, last) {
    Object.assign(this, { figure, spec, last });
    const head = element(figure, "figcaption");
    element(head, "span", "title", spec.title);
    this.head(head);
    Object.assign(this, canvasPair(figure, `${spec.title}, over time`));
    this.listen();
  }

  head(parent) {
    const { kind, series, classes } = this.spec;
    if (kind === "lines" && series.length > 1 && new Set(series.map((one) => one.name)).size > 1) {
      this.toggles(legend(parent, series.map((one) => [one.name, one.colour])));
    }
    if (kind === "strip") legend(parent, classes.map(([name, , colour]) => [name, colour]));
    if (kind === "image") colourBar(parent, short(this.spec.low), short(this.spec.high), this.spec.z);
  }

  // A name in the legend shows and hides its line.
  toggles(list) {
    [...list.children].forEach((item, k) => {
      const press = element(null, "button");
      press.type = "button";
      press.setAttribute("aria-pressed", "true");
      press.append(...item.childNodes);
      item.append(press);
      press.addEventListener("click", () => {
        this.spec.series[k].off = !this.spec.series[k].off;
        press.setAttribute("aria-pressed", String(!this.spec.series[k].off));
        this.draw();
      });
    });
  }

  bounds() {
    const { spec } = this;
    if (spec.kind === "lines") {
      const ends = spec.series.map((one) => range(array(one.t)));
      return [Math.min(...ends.map((end) => end[0])), Math.max(...ends.map((end) => end[1]))];
    }
    return [range(array(spec.begin))[0], range(array(spec.end))[1]];
  }

  x(time) {
    return LEFT + ((time - view[0]) / (view[1] - view[0])) * (this.width - LEFT - RIGHT);
  }

  time(x) {
    return view[0] + ((x - LEFT) / (this.width - LEFT - RIGHT)) * (view[1] - view[0]);
  }

  draw() {
    this.width = this.box.clientWidth;
    if (!(this.width > LEFT + RIGHT)) return;
    this.plot = this.spec.height;
    this.height = this.plot + (this.last ? 40 : 8);
    const pen = prepared(this.below, this.width, this.height);
    this.box.style.height = `${this.height}px`;
    this.times(pen);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, this.width - LEFT - RIGHT, this.plot);
    pen.clip();
    this[this.spec.kind](pen);
    pen.restore();
    if (this.spec.kind !== "strip") this.values(pen);
    this.over();
  }

  times(pen) {
    const about = Math.max(2, Math.floor((this.width - LEFT - RIGHT) / 90));
    pen.strokeStyle = GRID;
    pen.lineWidth = 1;
    const found = timeTicks(view[0], view[1], about, whole[1] - whole[0]);
    for (const [time, words] of found) {
      const x = Math.round(this.x(time)) + 0.5;
      pen.beginPath();
      pen.moveTo(x, 0);
      pen.lineTo(x, this.plot);
      pen.stroke();
      if (this.last) {
        pen.fillStyle = INK;
        pen.textAlign = "center";
        pen.textBaseline = "top";
        pen.fillText(words, Math.min(Math.max(x, LEFT + 10), this.width - RIGHT - 10), this.plot + 6);
      }
    }
    if (this.last) {
      pen.fillStyle = FAINT;
      pen.textAlign = "center";
      pen.fillText(timeLabel(view[0], view[1]), (LEFT + this.width - RIGHT) / 2, this.plot + 23);
    }
  }

  values(pen) {
    const [low, high] = this.y;
    const about = Math.max(3, Math.floor(this.plot / 26));
    const at = this.spec.names ? this.spec.names.map((_, k) => k + 1) : ticks(low, high, about);
    const step = at.length > 1 ? at[1] - at[0] : 0;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const value of at) {
      const y = this.plot * (1 - (value - low) / (high - low));
      pen.strokeStyle = INK;
      pen.beginPath();
      pen.moveTo(LEFT - 4, y);
      pen.lineTo(LEFT, y);
      pen.stroke();
      pen.fillStyle = INK;
      const words = this.spec.names ? this.spec.names[value - 1] : text(value, step);
      if (y > 4 && y < this.plot - 3) pen.fillText(fitted(pen, words, LEFT - (this.spec.y ? 22 : 8)), LEFT - 7, y);
    }
    pen.strokeStyle = INK;
    pen.beginPath();
    pen.moveTo(LEFT + 0.5, 0);
    pen.lineTo(LEFT + 0.5, this.plot);
    pen.stroke();
    pen.fillStyle = FAINT;
    sideways(pen, this.spec.y, 8, this.plot / 2, this.plot + 16);
  }

  lines(pen) {
    let low = Infinity;
    let high = -Infinity;
    const seen = this.spec.series.filter((one) => !one.off).map((one) => {
      const t = array(one.t);
      const first = Math.max(0, place(t, view[0]) - 1);
      const stop = Math.min(t.length, place(t, view[1]) + 1);
      for (const name of ["y", "low", "high"]) {
        if (one[name] !== undefined) {
          const [least, most] = range(array(one[name]).subarray(first, stop));
          if (array(one[name]).subarray(first, stop).some(Number.isFinite)) {
            low = Math.min(low, least);
            high = Math.max(high, most);
          }
        }
      }
      return [one, t, first, stop];
    });
    if (!(low <= high)) [low, high] = [0, 1];
    const margin = 0.05 * (high - low) || Math.abs(low) * 0.05 || 1;
    this.y = [low - margin, high + margin];
    const y = (value) => this.plot * (1 - (value - this.y[0]) / (this.y[1] - this.y[0]));
    for (const [one, t, first, stop] of seen) if (one.low !== undefined) this.band(pen, one, t, first, stop, y);
    for (const [one, t, first, stop] of seen.toReversed()) this.line(pen, one, t, first, stop, y);
  }

  band(pen, one, t, first, stop, y) {
    const low = array(one.low);
    const high = array(one.high);
    pen.fillStyle = one.colour;
    pen.globalAlpha = 0.18;
    for (let i = first; i < stop; i += 1) {
      let end = i;
      while (end < stop && Number.isFinite(low[end])) end += 1;
      if (end > i) {
        pen.beginPath();
        for (let k = i; k < end; k += 1) pen.lineTo(this.x(t[k]), y(high[k]));
        for (let k = end - 1; k >= i; k -= 1) pen.lineTo(this.x(t[k]), y(low[k]));
        pen.fill();
        i = end;
      }
    }
    pen.globalAlpha = 1;
  }

  line(pen, one, t, first, stop, y) {
    const values = array(one.y);
    const sparse = (stop - first) / (this.width - LEFT - RIGHT) < 0.12;
    pen.strokeStyle = one.colour;
    pen.fillStyle = one.colour;
    pen.lineWidth = 1.1;
    pen.lineJoin = "round";
    pen.beginPath();
    let drawing = false;
    for (let i = first; i < stop; i += 1) {
      if (!Number.isFinite(values[i])) {
        drawing = false;
      } else {
        const at = [this.x(t[i]), y(values[i])];
        if (drawing) pen.lineTo(...at);
        else pen.moveTo(...at);
        // A single value between two gaps has no line.
        if (sparse || (!drawing && !Number.isFinite(values[i + 1]))) pen.rect(at[0] - 1, at[1] - 1, 2, 2);
        drawing = true;
      }
    }
    pen.stroke();
  }

  image(pen) {
    const { spec } = this;
    const begin = array(spec.begin);
    const end = array(spec.end);
    this.picture ||= this.painted();
    this.y = [spec.bottom, spec.top];
    pen.imageSmoothingEnabled = false;
    pen.fillStyle = "#f3f3f3";
    pen.fillRect(LEFT, 0, this.width - LEFT - RIGHT, this.plot);
    // Columns without a gap between them are drawn as one image.
    let first = Math.max(0, place(end, view[0]) - 1);
    const stop = Math.min(begin.length, place(begin, view[1]) + 1);
    while (first < stop) {
      let next = first + 1;
      const width = (k) => end[k] - begin[k];
      const alike = (k) => Math.abs(begin[k] - end[k - 1]) < 0.5 * width(k) && Math.abs(width(k) / width(first) - 1) < 0.5;
      while (next < stop && alike(next)) next += 1;
      const left = this.x(begin[first]);
      const right = this.x(end[next - 1]);
      pen.drawImage(this.picture, first, 0, next - first, spec.rows, left, 0, Math.max(right - left, 0.5), this.plot);
      first = next;
    }
  }

  painted() {
    const { rows } = this.spec;
    const levels = array(this.spec.levels);
    const columns = levels.length / rows;
    const canvas = document.createElement("canvas");
    canvas.width = columns;
    canvas.height = rows;
    const image = canvas.getContext("2d").createImageData(columns, rows);
    for (let column = 0; column < columns; column += 1) {
      for (let row = 0; row < rows; row += 1) {
        const at = 4 * ((rows - 1 - row) * columns + column);
        image.data.set(SHADES[levels[column * rows + row]], at);
        image.data[at + 3] = 255;
      }
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }

  strip(pen) {
    const begin = array(this.spec.begin);
    const end = array(this.spec.end);
    const codes = array(this.spec.codes);
    const colours = new Map(this.spec.classes.map(([, code, colour]) => [code, colour]));
    const first = Math.max(0, place(end, view[0]) - 1);
    for (let k = first; k < begin.length && begin[k] < view[1]; k += 1) {
      pen.fillStyle = colours.get(codes[k]) || "#ffffff";
      pen.fillRect(this.x(begin[k]), 4, Math.max(this.x(end[k]) - this.x(begin[k]), 0.5), this.plot - 6);
    }
  }

  over() {
    if (!this.width || !this.height) return;
    const pen = prepared(this.above, this.width, this.height);
    if (this.drag) {
      pen.fillStyle = "rgba(0, 114, 178, 0.15)";
      pen.fillRect(Math.min(...this.drag), 0, Math.abs(this.drag[1] - this.drag[0]), this.plot);
    }
    if (moment !== null && moment >= view[0] && moment <= view[1]) {
      pen.strokeStyle = "#D55E00";
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(this.x(moment), 0);
      pen.lineTo(this.x(moment), this.plot);
      pen.stroke();
    }
  }

  // What lies under a moment.
  told(time) {
    const { spec } = this;
    const rows = [["time", timeText(time)]];
    if (spec.kind === "lines") {
      for (const one of spec.series) {
        const t = array(one.t);
        let k = Math.min(t.length - 1, place(t, time));
        if (k > 0 && Math.abs(t[k - 1] - time) < Math.abs(t[k] - time)) k -= 1;
        if (spec.series.length === 1 || t.length) rows.push([one.name, short(array(one.y)[k]), one.colour]);
      }
    } else {
      const k = place(array(spec.end), time);
      const inside = k < array(spec.begin).length && array(spec.begin)[k] <= time;
      if (inside && spec.kind === "strip") {
        const found = spec.classes.find(([, code]) => code === array(spec.codes)[k]);
        if (found) rows.push([spec.title, found[0], found[2]]);
      }
    }
    return rows;
  }

  listen() {
    const { above } = this;
    const at = (event) => Math.min(Math.max(event.offsetX, LEFT), this.width - RIGHT);
    above.addEventListener("pointerdown", (event) => {
      if (event.button === 0) this.drag = [at(event), at(event)];
      above.setPointerCapture(event.pointerId);
    });
    above.addEventListener("pointermove", (event) => {
      if (this.drag) this.drag[1] = at(event);
      const time = this.time(at(event));
      setMoment(time);
      showTip(event, this.told(time));
    });
    above.addEventListener("pointerup", () => {
      const drag = this.drag;
      this.drag = null;
      if (drag && Math.abs(drag[1] - drag[0]) > 6) setView(this.time(Math.min(...drag)), this.time(Math.max(...drag)));
      else this.over();
    });
    const leave = () => {
      this.drag = null;
      hideTip();
      setMoment(null);
    };
    above.addEventListener("pointerleave", leave);
    above.addEventListener("pointercancel", leave);
    above.addEventListener("dblclick", () => setView(...whole));
    above.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, this.time(at(event)));
    }, { passive: false });
    above.addEventListener("keydown", keys);
  }
}

function zoom(factor, around = (view[0] + view[1]) / 2) {
  setView(around - factor * (around - view[0]), around + factor * (view[1] - around));
}

function shift(share) {
  const by = share * (view[1] - view[0]);
  setView(view[0] + by, view[1] + by);
}

function keys(event) {
  const known = {
    ArrowLeft: () => shift(-0.25), ArrowRight: () => shift(0.25), "+": () => zoom(0.5), "-": () => zoom(2),
    0: () => setView(...whole), Escape: () => setView(...whole),
  };
  if (event.key in known) {
    known[event.key]();
    event.preventDefault();
  }
}
