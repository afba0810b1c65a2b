(() => {
"use strict";
const SVG = "http://www.w3.org/2000/svg";
const looks = JSON.parse(document.getElementById("looks").textContent);
const order = Object.keys(looks);
const hidden = new Set();
const charts = [];

function make(tag, attributes, parent) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (parent) parent.append(element);
  return element;
}

// Names can be of any length; what would leave the picture is cut.
function write(text, attributes, parent, room = Infinity) {
  const most = Math.max(3, Math.floor(room / 7));
  make("text", attributes, parent).textContent = text.length > most ? text.slice(0, most - 1) + "…" : text;
}

// Numbers as text, by the rules of display/numbers.py and with a minus as wide as a plus.
function digits(value, number = 4) {
  if (value === null || value === undefined) return "–";
  const rounded = +value.toPrecision(number), size = Math.abs(rounded);
  const text = size !== 0 && (size >= 1e6 || size < 1e-4) ? rounded.toExponential().replace("+", "") : String(rounded);
  return text.replace(/-/g, "−");
}

const AXIS = { scale: "linear", domain: null, include: [], ticks: [], centre: 0, width: 1, bare: false };

const known = value => value !== null && value !== undefined;

// Scales: each maps a value onto a line on which equal steps look equal.
const STRAIGHTEN = {
  linear: () => value => value,
  log: () => value => Math.log10(value),
  missed: () => value => -Math.sign(1 - value) * Math.sqrt(Math.abs(1 - value)),
  stretched: axis => value => Math.asinh((value - axis.centre) / axis.width),
};

function niceTicks(low, high, room) {
  const rough = (high - low) / Math.max(room, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(each => each * power).find(each => each >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) ticks.push(+(i * step).toPrecision(12));
  return ticks;
}

function logTicks(low, high, room) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const within = subs => {
    const ticks = [];
    for (let power = first; power <= last; power++) for (const sub of subs) ticks.push(+(sub * 10 ** power).toPrecision(3));
    return ticks.filter(tick => tick >= low * 0.999 && tick <= high * 1.001);
  };
  const few = [[1, 2, 5], [1, 3], [1]].map(within).find(ticks => ticks.length <= room + 1);
  return few && few.length ? few : within([1, 2, 5]).slice(0, room + 1);
}

function stretchedTicks(axis, low, high) {
  const ticks = [axis.centre];
  for (let power = Math.ceil(Math.log10(axis.width)); power < 12; power++)
    for (const sign of [-1, 1]) ticks.push(axis.centre + sign * 10 ** power);
  return ticks.filter(tick => tick >= low && tick <= high);
}

function tickText(axis, value, ticks) {
  if (axis.scale === "stretched") {
    const step = value - axis.centre;
    return Math.abs(step) < 1e-12 ? "target" : (step > 0 ? "+" : "") + digits(+step.toPrecision(2));
  }
  if (axis.scale !== "linear" || ticks.length < 2 || axis.ticks.length) return digits(value);
  const step = Math.abs(ticks[1] - ticks[0]), size = Math.max(...ticks.map(Math.abs));
  if (size >= 1e6 || size < 1e-3) return digits(value);
  return value.toFixed(Math.max(0, Math.ceil(-Math.log10(step) - 1e-9))).replace(/-/g, "−");
}

function extent(axis, values) {
  if (axis.domain) return axis.domain;
  const found = [...values, ...axis.include].filter(value => known(value) && (axis.scale !== "log" || value > 0));
  let low = Math.min(...found), high = Math.max(...found);
  if (!found.length) return axis.scale === "log" ? [0.1, 1] : [0, 1];
  if (axis.scale === "missed") {
    const below = axis.ticks.filter(tick => tick < Math.min(low, 0.93) - 0.02 || tick === 0);
    return [Math.max(...below), 1.0015];
  }
  if (axis.scale === "log") return low === high ? [low / 2, high * 2] : [low * (low / high) ** 0.06, high * (high / low) ** 0.06];
  if (axis.scale === "stretched") {
    const reach = side => axis.centre + 1.5 * side;
    return [reach(Math.min(low - axis.centre, -3 * axis.width)), reach(Math.max(high - axis.centre, 3 * axis.width))];
  }
  if (axis.bare) return [0, high * 1.06];
  const pad = (high - low || Math.abs(high) || 1) * 0.06;
  return [low - pad, high + pad];
}

function scaleOf(axis, domain, from, to) {
  const straight = STRAIGHTEN[axis.scale](axis);
  const low = straight(domain[0]), high = straight(domain[1]);
  return value => from + (to - from) * (straight(value) - low) / (high - low);
}

function ticksOf(axis, domain, size, gap) {
  const room = Math.max(2, Math.floor(size / gap));
  if (axis.ticks.length) {
    const inside = axis.ticks.filter(tick => tick >= domain[0] && tick <= domain[1]);
    if (axis.scale === "missed") return inside;
    const step = Math.ceil(inside.length / room);
    return inside.filter((_, i) => (inside.length - 1 - i) % step === 0);
  }
  if (axis.scale === "log") return logTicks(...domain, room);
  if (axis.scale === "stretched") return stretchedTicks(axis, ...domain);
  return niceTicks(...domain, room);
}

// Of ticks whose labels would lie on each other, the first is kept.
function apart(ticks, place, least) {
  const kept = [];
  for (const tick of ticks) if (kept.every(other => Math.abs(place(other) - place(tick)) >= least)) kept.push(tick);
  return kept;
}

// Markers, by matplotlib's names.
const CORNERS = {
  s: [[-1, -1], [1, -1], [1, 1], [-1, 1]], D: [[0, -1.35], [1.35, 0], [0, 1.35], [-1.35, 0]],
  "^": [[0, -1.3], [1.2, 0.9], [-1.2, 0.9]], v: [[0, 1.3], [1.2, -0.9], [-1.2, -0.9]],
  "<": [[-1.3, 0], [0.9, -1.2], [0.9, 1.2]], ">": [[1.3, 0], [-0.9, -1.2], [-0.9, 1.2]],
  P: [[-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2], [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]],
  X: [[0, -0.5], [0.7, -1.2], [1.2, -0.7], [0.5, 0], [1.2, 0.7], [0.7, 1.2], [0, 0.5], [-0.7, 1.2], [-1.2, 0.7], [-0.5, 0], [-1.2, -0.7], [-0.7, -1.2]],
};
const star = (corners, inner, turn = 0) => Array.from({ length: inner ? 2 * corners : corners }, (_, i) => {
  const angle = (i * Math.PI * (inner ? 1 : 2)) / corners - Math.PI / 2 + turn, radius = inner && i % 2 ? inner : 1.3;
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
});
Object.assign(CORNERS, { "*": star(5, 0.6), h: star(6), p: star(5) });

function marker(shape, x, y, radius) {
  if (!(shape in CORNERS)) return `M${x - radius} ${y}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0Z`;
  return "M" + CORNERS[shape].map(([dx, dy]) => `${(x + radius * dx).toFixed(2)} ${(y + radius * dy).toFixed(2)}`).join("L") + "Z";
}

function inked(look) {
  const colour = `var(${look.variable})`;
  return {
    line: `fill:none;stroke:${colour};stroke-width:2;stroke-dasharray:${look.dashes.map(each => 2 * each).join(" ") || "none"}`,
    thin: `fill:none;stroke:${colour};stroke-width:1`,
    area: share => `fill:${colour};fill-opacity:${share};fill-rule:evenodd`,
    dot: `stroke:${colour};stroke-width:1.3;fill:${look.hollow ? "var(--paper)" : colour}`,
  };
}

function polyline(xs, ys) {
  let path = "", pen = "M";
  xs.forEach((x, i) => {
    if (Number.isFinite(x) && Number.isFinite(ys[i])) { path += `${pen}${x.toFixed(1)} ${ys[i].toFixed(1)}`; pen = "L"; } else pen = "M";
  });
  return path;
}

// A series lies at the ticks of x; its bars are told by their length, and no share exceeds one.
function completed(mark, { x, y }) {
  if (mark.kind !== "series") return mark;
  if (!mark.reach) return { ...mark, x: x.ticks };
  const most = y.scale === "missed" ? 1 : Infinity;
  const low = mark.y.map((y, i) => known(y) ? y - mark.reach[i] : null), high = mark.y.map((y, i) => known(y) ? Math.min(y + mark.reach[i], most) : null);
  return { ...mark, x: x.ticks, low, high };
}

// The area between two lines, in pieces where they have gaps.
function ribbon(xs, low, high) {
  const pieces = [[]];
  xs.forEach((_, i) => { if (Number.isFinite(low[i]) && Number.isFinite(high[i])) pieces.at(-1).push(i); else pieces.push([]); });
  const closed = piece => {
    const back = piece.slice().reverse();
    return polyline([...piece, ...back].map(i => xs[i]), [...piece.map(i => low[i]), ...back.map(i => high[i])]) + "Z";
  };
  return pieces.filter(piece => piece.length > 1).map(closed).join("");
}

class Chart {
  constructor(figure) {
    this.plot = figure.querySelector(".plot");
    const spec = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    this.spec = { ...spec, x: { ...AXIS, ...spec.x }, y: { ...AXIS, ...spec.y }, marks: spec.marks.map(mark => completed(mark, spec)) };
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.setAttribute("role", "status");
    this.tip.hidden = true;
    this.width = 0;
    this.plot.append(this.tip);
    this.plot.addEventListener("pointermove", event => this.pointAt(event));
    this.plot.addEventListener("pointerdown", event => this.pointAt(event));
    this.plot.addEventListener("pointerleave", () => this.forget());
    this.plot.addEventListener("focus", () => { if (this.plot.matches(":focus-visible")) this.step(0, 0); });
    this.plot.addEventListener("blur", () => this.forget());
    this.plot.addEventListener("keydown", event => this.key(event));
    new ResizeObserver(() => { if (this.plot.clientWidth !== this.width) this.draw(); }).observe(this.plot);
  }

  // Areas of many methods lie on each other: the more there are, the fainter each.
  faint(most) { return Math.min(most, 2.4 * most / order.filter(name => !hidden.has(name)).length); }

  get shown() { return this.spec.marks.filter(mark => !hidden.has(mark.method)); }

  draw(wanted) {
    const width = this.plot.clientWidth && (wanted || this.plot.clientWidth);
    if (!width) return;
    this.width = width;
    this.forget();
    this.tips = [];
    this.svg?.remove();
    const rows = this.shown.filter(mark => mark.kind === "interval");
    this.height = this.spec.y.scale === "rows" ? 52 + 42 * Math.max(rows.length, 1)
      : this.spec.shape === "square" ? Math.min(width, 420) : Math.max(220, Math.min(width * (this.spec.shape === "wide" ? 0.46 : 0.72), 380));
    this.svg = make("svg", { viewBox: `0 0 ${width} ${this.height}`, "aria-hidden": "true" });
    this.plot.prepend(this.svg);
    this.axes(rows);
    for (const mark of this.shown) this[mark.kind](mark);
    this.ring = make("circle", { class: "pointed", r: 7, visibility: "hidden" }, this.svg);
  }

  axes(rows) {
    const { x, y } = this.spec, marks = this.shown;
    const across = marks.flatMap(mark => mark.kind === "interval" ? [...mark.low, ...mark.high] : mark.x || (mark.outer || []).flatMap(ring => ring[0]));
    const up = marks.flatMap(mark => mark.kind === "interval" || mark.kind === "span" ? []
      : [...(mark.y || []), ...(mark.low || []), ...(mark.high || []), ...(mark.outer || []).flatMap(ring => ring[1])]);
    const top = y.label ? 24 : 8, bottom = this.height - 40;
    const yDomain = y.scale === "rows" ? [0, 1] : extent(y, up), xDomain = extent(x, across);
    const placeY = y.scale === "rows" ? null : scaleOf(y, yDomain, bottom, top);
    const yTicks = y.scale === "rows" || y.bare ? [] : apart(ticksOf(y, yDomain, bottom - top, 34), placeY, 15);
    const texts = yTicks.map(tick => tickText(y, tick, yTicks));
    const left = y.scale === "rows" || y.bare ? 6 : 10 + 6.9 * Math.max(...texts.map(text => text.length), 1);
    const right = this.width - 8;
    const dodge = x.ticks.length ? 14 : 0;
    this.box = { left, right, top, bottom };
    this.x = scaleOf(x, xDomain, left + dodge, right - dodge);
    this.y = placeY;
    this.rows = new Map(rows.map((mark, i) => [mark, 34 + 42 * i]));
    yTicks.forEach((tick, i) => {
      make("line", { class: "grid", x1: left, x2: right, y1: this.y(tick), y2: this.y(tick) }, this.svg);
      write(texts[i], { x: left - 6, y: this.y(tick) + 4, "text-anchor": "end" }, this.svg);
    });
    make("line", { class: "frame", x1: left, x2: right, y1: bottom, y2: bottom }, this.svg);
    const xTicks = apart(ticksOf(x, xDomain, right - left, 50), this.x, 28);
    for (const tick of xTicks) {
      make("line", { class: "frame", x1: this.x(tick), x2: this.x(tick), y1: bottom, y2: bottom + 4 }, this.svg);
      write(tickText(x, tick, xTicks), { x: this.x(tick), y: bottom + 17, "text-anchor": "middle" }, this.svg);
    }
    write(x.label, { class: "axis-label", x: (left + right) / 2, y: bottom + 34, "text-anchor": "middle" }, this.svg, right - left);
    if (y.label) write(y.label, { class: "axis-label", x: 0, y: 12 }, this.svg, this.width);
    const clip = `clip-${charts.indexOf(this)}`;
    make("rect", { x: left, y: top, width: Math.max(right - left, 0), height: Math.max(bottom - top, 0) }, make("clipPath", { id: clip }, this.svg));
    this.inside = make("g", { "clip-path": `url(#${clip})` }, this.svg);
    this.above = make("g", {}, this.svg);
  }

  group(mark, parent = this.inside) {
    return make("g", { class: `mark ${mark.kind}`, "data-method": mark.method ?? "" }, parent);
  }

  name(mark) { return mark.method !== null && mark.method in looks ? looks[mark.method].label : mark.name || ""; }

  remember(mark, px, py, text) {
    this.tips.push({ mark, px, py, text: [this.name(mark), text].filter(Boolean).join("\n") });
  }

  values(mark, i) {
    const { x, y } = this.spec, band = mark.low && known(mark.low[i]) ? ` (${digits(mark.low[i])} to ${digits(mark.high[i])})` : "";
    const what = mark.what || y.label;
    return y.bare ? `${x.label} ${digits(mark.x[i])}` : `${x.label} ${digits(mark.x[i])}\n${what ? what + " " : ""}${digits(mark.y[i], 6)}${band}`;
  }

  curve(mark) {
    const look = looks[mark.method], style = look && inked(look), group = this.group(mark);
    const xs = mark.x.map(this.x), at = values => values.map(value => known(value) ? this.y(value) : NaN);
    if (mark.low) {
      make("path", { d: ribbon(xs, at(mark.low), at(mark.high)), style: style.area(this.faint(0.15)) }, group);
      for (const side of [mark.low, mark.high]) make("path", { d: polyline(xs, at(side)), style: style.thin + ";stroke-opacity:.45" }, group);
    }
    const ys = at(mark.y);
    make("path", style ? { d: polyline(xs, ys), style: style.line } : { d: polyline(xs, ys), class: "faint" }, group);
    xs.forEach((px, i) => {
      if (Number.isFinite(ys[i]) && px >= this.box.left && px <= this.box.right) this.remember(mark, px, ys[i], this.values(mark, i));
    });
  }

  points(mark) {
    const look = looks[mark.method], group = this.group(mark, this.above);
    const ink = look ? { style: inked(look).dot } : { class: mark.small ? "dust" : "observed" };
    mark.x.forEach((value, i) => {
      if (!known(value) || !known(mark.y[i])) return;
      const px = this.x(value), py = this.y(mark.y[i]);
      make("path", { d: marker(look ? look.marker : "o", px, py, mark.small ? 1.6 : 3.4), ...ink }, group);
      if (!mark.small) this.remember(mark, px, py, this.values(mark, i));
    });
  }

  series(mark) {
    const look = looks[mark.method], style = inked(look), group = this.group(mark, this.above);
    const rank = order.filter(name => !hidden.has(name));
    const shift = (rank.indexOf(mark.method) - (rank.length - 1) / 2) * Math.min(5, 26 / rank.length);
    const xs = mark.x.map(value => this.x(value) + shift), ys = mark.y.map(value => known(value) ? this.y(value) : NaN);
    make("path", { d: polyline(xs, ys), style: style.thin + ";stroke-opacity:.6" }, group);
    xs.forEach((px, i) => {
      if (!Number.isFinite(ys[i])) return;
      if (mark.low) make("path", { d: polyline([px, px], [this.y(mark.low[i]), this.y(mark.high[i])]), style: style.thin }, group);
      make("path", { d: marker(look.marker, px, ys[i], 3.4), style: style.dot }, group);
      this.remember(mark, px, ys[i], this.values(mark, i));
    });
  }

  interval(mark) {
    const look = looks[mark.method], style = inked(look), group = this.group(mark, this.above), py = this.rows.get(mark);
    write(this.name(mark), { x: this.box.left, y: py - 11, style: "fill:var(--ink)" }, group, this.width);
    const [low, middle, high] = [mark.low[0], mark.y[0], mark.high[0]];
    make("path", { d: polyline([this.x(low), this.x(high)], [py, py]), style: style.line }, group);
    make("path", { d: marker(look.marker, this.x(middle), py, 4.4), style: style.dot }, group);
    this.remember(mark, this.x(middle), py, `${this.spec.x.label} ${digits(middle)} (${digits(low)} to ${digits(high)})`);
  }

  regions(mark) {
    const style = inked(looks[mark.method]), group = this.group(mark);
    const path = rings => rings.map(([xs, ys]) => polyline(xs.map(this.x), ys.map(this.y)) + "Z").join("");
    make("path", { d: path(mark.outer), style: style.line + ";stroke-width:1.6" }, group);
    make("path", { d: path(mark.inner), style: style.area(this.faint(0.3)) }, group);
  }

  rule(mark) {
    const { left, right, top, bottom } = this.box, group = this.group(mark);
    const at = mark.along === "y" ? this.y(mark.at) : this.x(mark.at);
    make("line", { class: "rule", ...(mark.along === "y" ? { x1: left, x2: right, y1: at, y2: at } : { x1: at, x2: at, y1: top, y2: bottom }) }, group);
  }

  span(mark) {
    const { left, right } = this.box, from = this.y(mark.high), to = this.y(mark.low);
    make("rect", { class: "span", x: left, y: from, width: right - left, height: Math.max(to - from, 0) }, this.group(mark));
  }

  pointAt(event) {
    const box = this.plot.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    let best = null, least = Infinity;
    for (const tip of this.tips || []) {
      const distance = Math.hypot(tip.px - px, (tip.py - py) * 0.7);
      if (distance < least) { least = distance; best = tip; }
    }
    if (best && least < 90) this.point(best); else this.forget();
  }

  point(tip) {
    this.current = tip;
    this.tip.textContent = tip.text;
    this.tip.hidden = false;
    this.ring.setAttribute("cx", tip.px);
    this.ring.setAttribute("cy", tip.py);
    this.ring.setAttribute("visibility", "visible");
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    this.tip.style.left = `${Math.max(0, Math.min(tip.px - width / 2, this.width - width))}px`;
    this.tip.style.top = `${tip.py - height - 12 < 0 ? tip.py + 14 : tip.py - height - 12}px`;
  }

  forget() {
    this.tip.hidden = true;
    this.ring?.setAttribute("visibility", "hidden");
  }

  step(along, across) {
    if (!this.tips || !this.tips.length) return;
    const marks = [...new Set(this.tips.map(tip => tip.mark))];
    const now = this.tips.includes(this.current) ? this.current : this.tips[0];
    const mark = marks[(marks.indexOf(now.mark) + across + marks.length) % marks.length];
    const own = this.tips.filter(tip => tip.mark === mark);
    const nearest = own.reduce((best, tip) => Math.abs(tip.px - now.px) < Math.abs(best.px - now.px) ? tip : best);
    const place = own.includes(now) ? own.indexOf(now) : own.indexOf(nearest);
    this.point(own[Math.max(0, Math.min(place + along, own.length - 1))]);
  }

  key(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key === "Escape") this.forget();
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.step(...moves[event.key]);
  }
}

function swatches() {
  for (const svg of document.querySelectorAll("svg.swatch")) {
    const look = looks[svg.dataset.method], style = inked(look);
    svg.setAttribute("viewBox", "0 0 32 14");
    make("path", { d: "M1 7H31", style: style.line }, svg);
    make("path", { d: marker(look.marker, 16, 7, 3.6), style: style.dot }, svg);
  }
}

function choose() {
  const selects = [...document.querySelectorAll(".controls select")];
  for (const element of document.querySelectorAll(".choice, figure.chart"))
    element.hidden = selects.some(({ name, value }) => element.dataset[name] !== undefined && element.dataset[name] !== value);
  for (const notice of document.querySelectorAll(".choice-empty"))
    notice.hidden = Boolean(notice.parentElement.querySelector(".choice:not([hidden])"));
  hidden.clear();
  for (const box of document.querySelectorAll('.controls input[name="method"]')) if (!box.checked) hidden.add(box.value);
  for (const chart of charts) chart.draw();
}

// Paper cannot be unfolded, nor is it as wide as the window: tables are printed open, and charts at the style sheet's sizes.
const PRINTED = { wide: 567, panel: 359, square: 321 };
let folded = [];
function prepare(printing) {
  if (printing && !folded.length) {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const each of folded) each.open = true;
    for (const chart of charts) chart.draw(PRINTED[chart.spec.shape]);
  } else if (!printing) {
    for (const each of folded) each.open = false;
    folded = [];
    for (const chart of charts) chart.draw();
  }
}

for (const figure of document.querySelectorAll("figure.chart")) charts.push(new Chart(figure));
swatches();
document.querySelector(".controls")?.addEventListener("change", choose);
document.querySelector(".controls")?.addEventListener("submit", event => event.preventDefault());
window.addEventListener("beforeprint", () => prepare(true));
window.addEventListener("afterprint", () => prepare(false));
const paper = window.matchMedia("print");
paper.addEventListener("change", () => prepare(paper.matches));
choose();
})();
