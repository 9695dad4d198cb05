// Numbers: arrays from base64, ticks and their texts, colours of values.
const content = JSON.parse(document.getElementById("data").textContent);
const KINDS = { f4: Float32Array, f8: Float64Array, u1: Uint8Array, i4: Int32Array };
const VIRIDIS = [
  [68, 1, 84], [72, 26, 108], [71, 47, 125], [65, 68, 135], [57, 86, 140], [49, 104, 142], [42, 120, 142],
  [35, 136, 142], [31, 152, 139], [34, 168, 132], [53, 183, 121], [84, 197, 104], [122, 209, 81], [165, 219, 54],
  [210, 226, 27], [253, 231, 37],
];
const DAY = 86400;
const DATE_STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600,
  7200, 10800, 21600, 43200, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY, 365 * DAY, 1825 * DAY,
];

function unpack(cell) {
  if (cell.step !== undefined) return widened(cell);
  const [kind, text] = Object.entries(cell)[0];
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return new KINDS[kind](bytes.buffer);
}
// Numbers kept as whole steps, to keep the page small; the lowest step is nothing.
function widened({ i2, low, step }) {
  const binary = atob(i2);
  const found = new Float32Array(binary.length / 2);
  for (let k = 0; k < found.length; k += 1) {
    const whole = ((binary.charCodeAt(2 * k) | (binary.charCodeAt(2 * k + 1) << 8)) << 16) >> 16;
    found[k] = whole === -32768 ? NaN : low + (whole + 32767) * step;
  }
  return found;
}
const unpacked = new Map();
function array(number) {
  if (!unpacked.has(number)) unpacked.set(number, unpack(content.arrays[number]));
  return unpacked.get(number);
}

// The first place whose value is not below.
function place(values, value) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function range(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}

function quantile(sorted, share) {
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] : 0;
}

// Bounds that hold nearly all values: a few far ones would make one dot of the others.
function mostOf(values) {
  const sorted = Float64Array.from(values).filter(Number.isFinite).sort();
  const low = quantile(sorted, 0.002);
  const high = quantile(sorted, 0.998);
  const margin = 0.06 * (high - low) || 0.5;
  const [least, most] = sorted.length ? [sorted[0], sorted[sorted.length - 1]] : [0, 1];
  return [Math.max(low - 2 * margin, least - margin), Math.min(high + 2 * margin, most + margin)];
}

function ticks(low, high, about) {
  const rough = (high - low) / Math.max(1, about);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(k * step);
  return found;
}

function text(value, step) {
  if (value === 0) return "0";
  if (!(step > 0)) return short(value);
  const size = Math.max(Math.abs(value), step);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(1).replace("-", "−");
  const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step) - 1e-9)));
  return value.toFixed(digits).replace("-", "−");
}

function short(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const plain = size >= 1e5 || (size < 1e-3 && size > 0) ? value.toExponential(2) : Number(value.toPrecision(4)).toString();
  return plain.replace("-", "−");
}

// Time: seconds from a start; a date-time where the start is one.
const origin = content.time.start === null ? null : Date.parse(`${content.time.start}Z`);
const inFrames = content.time.label === "frame";

function timeUnit(span) {
  if (inFrames) return [1, "frame"];
  if (span > 3 * 3600) return [3600, "time (h)"];
  return span > 900 ? [60, "time (min)"] : [1, content.time.label];
}

function stamp(seconds, step) {
  const whole = new Date(origin + Math.round(seconds * 1000)).toISOString();
  if (step >= DAY) return whole.slice(0, 10);
  if (step >= 60) return whole.slice(11, 16);
  return step >= 1 ? whole.slice(11, 19) : whole.slice(11, 23);
}

function timeTicks(low, high, about, whole) {
  if (origin === null) {
    const [unit] = timeUnit(whole);
    const at = ticks(low / unit, high / unit, about);
    const step = at.length > 1 ? at[1] - at[0] : 0;
    return at.map((value) => [value * unit, text(value, step)]);
  }
  const step = DATE_STEPS.find((one) => (high - low) / one <= about) || 3650 * DAY;
  const offset = origin / 1000;
  const found = [];
  for (let k = Math.ceil((low + offset) / step); k * step - offset <= high; k += 1) {
    found.push([k * step - offset, stamp(k * step - offset, step)]);
  }
  return found;
}

function timeLabel(low, high) {
  if (origin === null) return timeUnit(whole[1] - whole[0])[1];
  const first = stamp(low, DAY);
  const last = stamp(high, DAY);
  return first === last ? first : `${first} to ${last}`;
}

function timeText(seconds) {
  if (origin !== null) {
    return new Date(origin + Math.round(seconds * 1000)).toISOString().replace("T", " ").slice(0, 23);
  }
  if (inFrames) return `frame ${Math.round(seconds)}`;
  return seconds < 600 ? `${seconds.toFixed(3)} s` : `${(seconds / 60).toFixed(3)} min`;
}

function viridis(share) {
  const at = Math.max(0, Math.min(1, share)) * (VIRIDIS.length - 1);
  const k = Math.min(VIRIDIS.length - 2, Math.floor(at));
  return VIRIDIS[k].map((low, channel) => Math.round(low + (at - k) * (VIRIDIS[k + 1][channel] - low)));
}
const SHADES = Array.from({ length: 256 }, (_, k) => viridis(k / 255));
const SHADE_TEXTS = SHADES.map(([r, g, b]) => `rgb(${r},${g},${b})`);
