// Maps: one dot a frame, in two dimensions or in three that can be turned.
const shownTimes = () => array(content.points.time);
let coloured = 0;
let axes = [0, 1, 2];
const maps = [];

function colouring() {
  return content.points.colourings[coloured];
}

// The colour of every dot, made once for each colouring.
const dotColours = new Map();
function colours() {
  if (!dotColours.has(coloured)) dotColours.set(coloured, madeColours(colouring()));
  return dotColours.get(coloured);
}

function madeColours(by) {
  if (by.codes !== undefined) {
    const known = new Map(by.classes.map(([, code, colour]) => [code, colour]));
    return Array.from(array(by.codes), (code) => known.get(code) || "#B8B8B8");
  }
  const values = array(by.values);
  const [low, high] = by.name === "time" || by.name === "frame" ? range(values) : mostOf(values);
  return Array.from(values, (value) =>
    Number.isFinite(value) ? SHADE_TEXTS[Math.round(255 * Math.max(0, Math.min(1, (value - low) / (high - low || 1))))] : "#B8B8B8",
  );
}

function axis(spec, k) {
  const found = content.estimates[spec.estimate];
  return Math.min(axes[k], found.columns.length - 1);
}

class DotMap {
  constructor(figure, spec) {
    Object.assign(this, { figure, spec });
    element(element(figure, "figcaption"), "span", "title", spec.title);
    Object.assign(this, canvasPair(figure, spec.title));
    this.scales = new Map();
    this.turned = [-0.6, 0.45];
    this.wide = false;
    this.listen();
  }

  column(k) {
    return array(content.estimates[this.spec.estimate].columns[axis(this.spec, k)]);
  }

  name(k) {
    return content.estimates[this.spec.estimate].names[axis(this.spec, k)];
  }

  scale(k) {
    const key = `${axis(this.spec, k)} ${this.wide}`;
    if (!this.scales.has(key)) this.scales.set(key, this.wide ? range(this.column(k)) : mostOf(this.column(k)));
    return this.scales.get(key);
  }

  draw() {
    this.width = this.box.clientWidth;
    if (!(this.width > 80)) return;
    this.height = Math.round(Math.min(this.width, 560) * 0.82);
    this.box.style.height = `${this.height}px`;
    const pen = prepared(this.below, this.width, this.height);
    this.placed = this.spec.kind === "map3" ? this.solid(pen) : this.flat(pen);
    this.dots(pen);
    this.over();
  }

  flat(pen) {
    const edge = { left: 52, right: 10, top: 6, bottom: 40 };
    const [x0, x1] = this.scale(0);
    const [y0, y1] = this.scale(1);
    const wide = this.width - edge.left - edge.right;
    const high = this.height - edge.top - edge.bottom;
    const x = (value) => edge.left + (wide * (value - x0)) / (x1 - x0 || 1);
    const y = (value) => edge.top + high * (1 - (value - y0) / (y1 - y0 || 1));
    this.frame = [edge.left, edge.top, wide, high];
    pen.fillStyle = INK;
    pen.strokeStyle = GRID;
    for (const [at, step] of stepped(ticks(x0, x1, wide / 60))) {
      stroke(pen, x(at), edge.top, x(at), edge.top + high);
      pen.textAlign = "center";
      pen.textBaseline = "top";
      pen.fillText(text(at, step), x(at), edge.top + high + 6);
    }
    for (const [at, step] of stepped(ticks(y0, y1, high / 45))) {
      stroke(pen, edge.left, y(at), edge.left + wide, y(at));
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      pen.fillText(text(at, step), edge.left - 6, y(at));
    }
    pen.fillStyle = FAINT;
    pen.textAlign = "center";
    pen.textBaseline = "bottom";
    pen.fillText(fitted(pen, this.name(0), wide), edge.left + wide / 2, this.height - 3);
    sideways(pen, this.name(1), 8, edge.top + high / 2, high);
    const columns = [this.column(0), this.column(1)];
    return Array.from(columns[0], (value, i) => [x(value), y(columns[1][i]), 0]);
  }

  solid(pen) {
    const size = Math.min(this.width, this.height) * 0.56;
    const [turn, tilt] = this.turned;
    const [c, s, ct, st] = [Math.cos(turn), Math.sin(turn), Math.cos(tilt), Math.sin(tilt)];
    const middle = [this.width / 2, this.height / 2];
    const seen = (a, b, h) => [
      middle[0] + size * (a * c - b * s),
      middle[1] - size * (h * ct + (a * s + b * c) * st),
      (a * s + b * c) * ct - h * st,
    ];
    this.frame = null;
    this.cube(pen, seen);
    const unit = [0, 1, 2].map((k) => this.scale(k));
    const columns = [0, 1, 2].map((k) => this.column(k));
    const share = (k, i) => (columns[k][i] - unit[k][0]) / (unit[k][1] - unit[k][0] || 1) - 0.5;
    return Array.from(columns[0], (_, i) => seen(share(0, i), share(1, i), share(2, i)));
  }

  // The edges of the box behind the dots, and the names of its axes.
  cube(pen, seen) {
    const corner = (bits) => seen((bits & 1) - 0.5, ((bits >> 1) & 1) - 0.5, ((bits >> 2) & 1) - 0.5);
    pen.strokeStyle = "#d4d4d4";
    for (let from = 0; from < 8; from += 1) {
      for (const bit of [1, 2, 4]) {
        if (!(from & bit)) stroke(pen, ...corner(from).slice(0, 2), ...corner(from | bit).slice(0, 2));
      }
    }
    const ends = [[[-0.5, -0.5, -0.5], [0.5, -0.5, -0.5]], [[-0.5, -0.5, -0.5], [-0.5, 0.5, -0.5]], [[-0.5, -0.5, -0.5], [-0.5, -0.5, 0.5]]];
    pen.fillStyle = INK;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    ends.forEach(([from, to], k) => {
      const [a, b] = [seen(...from), seen(...to)];
      pen.strokeStyle = FAINT;
      stroke(pen, a[0], a[1], b[0], b[1]);
      const out = seen(...to.map((one, j) => (j === k ? 0.1 : one * 1.14)));
      const name = fitted(pen, this.name(k), this.width * 0.4);
      const half = pen.measureText(name).width / 2 + 4;
      pen.fillText(name, Math.min(Math.max(out[0], half), this.width - half), Math.min(Math.max(out[1], 8), this.height - 8));
    });
  }

  dots(pen) {
    const shades = colours();
    const times = shownTimes();
    const part = view[0] > whole[0] || view[1] < whole[1];
    const order = this.spec.kind === "map3" ? this.byDepth() : this.byClass();
    const size = this.placed.length > 4000 ? 2.2 : 3;
    if (this.frame) {
      pen.save();
      pen.beginPath();
      pen.rect(...this.frame);
      pen.clip();
    }
    for (const inside of part ? [false, true] : [true]) {
      for (const i of order) {
        if ((times[i] >= view[0] && times[i] <= view[1]) === inside) {
          pen.globalAlpha = inside ? 0.72 : 0.07;
          pen.fillStyle = shades[i];
          pen.fillRect(this.placed[i][0] - size / 2, this.placed[i][1] - size / 2, size, size);
        }
      }
    }
    pen.globalAlpha = 1;
    if (this.frame) pen.restore();
  }

  byDepth() {
    return Array.from(this.placed.keys()).sort((a, b) => this.placed[b][2] - this.placed[a][2]);
  }

  // In an order that hides no class behind a later one.
  byClass() {
    this.mixed ||= Array.from(shownTimes().keys()).sort((a, b) => ((a * 7919) % 10007) - ((b * 7919) % 10007));
    return this.mixed;
  }

  over() {
    if (!this.placed) return;
    const pen = prepared(this.above, this.width, this.height);
    if (moment === null) return;
    const times = shownTimes();
    let k = Math.min(times.length - 1, place(times, moment));
    if (k > 0 && Math.abs(times[k - 1] - moment) < Math.abs(times[k] - moment)) k -= 1;
    const [x, y] = this.placed[k];
    pen.strokeStyle = "#ffffff";
    pen.lineWidth = 4;
    circle(pen, x, y, 6);
    pen.strokeStyle = "#D55E00";
    pen.lineWidth = 2;
    circle(pen, x, y, 6);
  }

  nearest(event) {
    let best = -1;
    let least = 144;
    this.placed.forEach(([x, y], i) => {
      const far = (x - event.offsetX) ** 2 + (y - event.offsetY) ** 2;
      if (far < least) [best, least] = [i, far];
    });
    return best;
  }

  point(event) {
    const i = this.nearest(event);
    if (i < 0) {
      hideTip();
      setMoment(null);
      return;
    }
    setMoment(shownTimes()[i]);
    const rows = [["time", timeText(shownTimes()[i])], ["frame", String(array(content.points.frame)[i])]];
    for (const k of this.spec.kind === "map3" ? [0, 1, 2] : [0, 1]) rows.push([this.name(k), short(this.column(k)[i])]);
    const by = colouring();
    if (by.codes !== undefined) {
      const found = by.classes.find(([, code]) => code === array(by.codes)[i]);
      if (found) rows.push([by.name, found[0], found[2]]);
    } else if (coloured > 0) rows.push([by.name, short(array(by.values)[i])]);
    showTip(event, rows);
  }

  turn(right, down) {
    this.turned = [this.turned[0] + right, Math.max(-1.5, Math.min(1.5, this.turned[1] + down))];
    this.figure.dataset.turned = this.turned.join(" ");
    this.draw();
  }

  listen() {
    const { above } = this;
    let from = null;
    above.addEventListener("pointerdown", (event) => {
      if (this.spec.kind !== "map3") return;
      from = [event.clientX, event.clientY];
      above.setPointerCapture(event.pointerId);
    });
    above.addEventListener("pointermove", (event) => {
      if (!this.placed) return;
      if (!from) {
        this.point(event);
        return;
      }
      this.turn((event.clientX - from[0]) / 120, (event.clientY - from[1]) / 120);
      from = [event.clientX, event.clientY];
    });
    for (const name of ["pointerup", "pointercancel"]) above.addEventListener(name, () => (from = null));
    above.addEventListener("pointerleave", () => {
      hideTip();
      setMoment(null);
    });
    above.addEventListener("dblclick", () => {
      this.wide = !this.wide;
      this.turned = [-0.6, 0.45];
      this.draw();
    });
    above.addEventListener("keydown", (event) => {
      const known = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, -0.15], ArrowDown: [0, 0.15] };
      if (this.spec.kind === "map3" && event.key in known) {
        this.turn(...known[event.key]);
        event.preventDefault();
      }
    });
  }
}

function stepped(at) {
  const step = at.length > 1 ? at[1] - at[0] : 0;
  return at.map((value) => [value, step]);
}

function stroke(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

function circle(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  pen.stroke();
}
