"use strict";
// The tools that page.js draws with: numbers as texts, elements, tables, the tip, axes.

// Numbers as texts.

function scaled(value, units, base) {
  let unit = 0;
  while (unit + 1 < units.length && value >= base) {
    value /= base;
    ++unit;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[unit]}`;
}
const bytes = (n) => scaled(n, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
const time = (ns) => scaled(ns, ["ns", "us", "ms", "s"], 1000);
const percent = (part, all) => `${(100 * part / Math.max(all, 1)).toFixed(1)} %`;
const sum = (list) => list.reduce((all, each) => all + each, 0);

// Turns a column of differences into values.
function column(differences) {
  let now = 0;
  return differences.map((each) => (now += each));
}

// Elements.

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((each) => each !== null));
  return element;
}
const html = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function show(id, ...children) {
  document.getElementById(id).replaceChildren(...children.filter((each) => each !== null));
}

// columns: [heading, class]; cells: texts or elements.
function table(columns, lines, caption) {
  const head = html("tr", {}, ...columns.map(([text, name]) =>
    html("th", { scope: "col", class: name }, text)));
  const body = lines.map((line) => html("tr", { class: line.chosen ? "is-chosen" : null },
    ...line.cells.map((cell, i) => html("td", { class: columns[i][1] },
      cell === null || cell === undefined ? "-" : cell))));
  return html("table", {}, html("caption", { hidden: "" }, caption), html("thead", {}, head),
    html("tbody", {}, ...body));
}

function asTable(columns, lines, caption) {
  return html("details", {}, html("summary", {}, "The same as a table"),
    html("div", { class: "scroll", tabindex: 0 }, table(columns, lines, caption)));
}

function legend(entries) {
  return html("ul", { class: "legend" }, ...entries.map(([words, colour, name]) => {
    const mark = html("i", { class: name, "aria-hidden": "true" });
    if (colour) mark.style.background = `var(--${colour})`;
    return html("li", {}, mark, words);
  }));
}

// The tip describes what is under the pointer, or at the cursor that the arrow keys move.

const tip = document.getElementById("tip");
function tell(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 14 + box.width > innerWidth ? x - 14 - box.width : x + 14;
  tip.style.left = `${Math.max(left, 4)}px`;
  tip.style.top = `${Math.min(Math.max(y + 14, 4), innerHeight - box.height - 4)}px`;
}
const hush = () => { tip.hidden = true; };

function tips(element, text) {
  fill(element, {
    tabindex: 0, role: "img", "aria-label": text.replaceAll("\n", "; "),
    onpointermove: (event) => tell(text, event.clientX, event.clientY), onpointerleave: hush,
    onblur: hush, onfocus: () => {
      const box = element.getBoundingClientRect();
      tell(text, box.right, box.top);
    },
  }, []);
  return element;
}

// A cursor over `count` slices of a picture; `words(i)` says what slice i is.
function withCursor(picture, plot, count, words) {
  const line = svg("line", { class: "cursor", y1: plot.top, y2: plot.bottom, visibility: "hidden" });
  const step = (plot.right - plot.left) / count;
  let at = -1;
  const move = (i, x, y) => {
    at = Math.min(Math.max(i, 0), count - 1);
    const middle = plot.left + (at + 0.5) * step;
    fill(line, { x1: middle, x2: middle, visibility: "visible" }, []);
    const box = picture.getBoundingClientRect();
    const scale = box.width / picture.viewBox.baseVal.width;
    tell(words(at), x === undefined ? box.left + middle * scale : x,
      y === undefined ? box.top + plot.top * scale : y);
  };
  const leave = () => {
    line.setAttribute("visibility", "hidden");
    hush();
  };
  picture.append(line);
  fill(picture, {
    tabindex: 0, onblur: leave, onpointerleave: leave,
    onpointermove: (event) => {
      const box = picture.getBoundingClientRect();
      const x = (event.clientX - box.left) * picture.viewBox.baseVal.width / box.width;
      if (x < plot.left || x > plot.right) return leave();
      move(Math.floor((x - plot.left) / step), event.clientX, event.clientY);
    },
    onkeydown: (event) => {
      const far = Math.max(Math.round(count / 20), 1);
      const moves = { ArrowRight: 1, ArrowLeft: -1, PageDown: far, PageUp: -far };
      if (event.key === "Home") move(0);
      else if (event.key === "End") move(count - 1);
      else if (event.key === "Escape") leave();
      else if (event.key in moves) move(at + moves[event.key]);
      else return;
      event.preventDefault();
    },
  }, []);
  return picture;
}

// Axes.

function roundStep(most, count) {
  const rough = most / count;
  const ten = 10 ** Math.floor(Math.log10(rough));
  return ten * [1, 2, 5, 10].find((each) => each * ten >= rough * 0.999);
}
function ticks(from, to, base, units, count) {
  let unit = 1;
  let name = 0;
  while (name + 1 < units.length && to >= unit * base) {
    unit *= base;
    ++name;
  }
  const step = roundStep((to - from) / unit, count);
  const found = [];
  for (let i = Math.ceil(from / unit / step - 1e-9); i * step * unit <= to * (1 + 1e-9); ++i) {
    found.push([i * step * unit, String(Number((i * step).toPrecision(6)))]);
  }
  return { found, unit: units[name] };
}
const byteTicks = (from, to, count) =>
  ticks(from, to, 1024, ["bytes", "KiB", "MiB", "GiB", "TiB"], count);
const timeTicks = (from, to, count) => ticks(from, to, 1000, ["ns", "us", "ms", "s"], count);

function yAxis(plot, axis, at, words) {
  return [...axis.found.flatMap(([value, text]) => [
    svg("line", { class: "grid", x1: plot.left, x2: plot.right, y1: at(value), y2: at(value) }),
    svg("text", { x: plot.left - 8, y: at(value) + 4, "text-anchor": "end" }, text)]),
  svg("text", { x: plot.left - 46, y: plot.top - 10, class: "strong" }, `${words}, ${axis.unit}`)];
}
function xAxis(plot, axis, at, words) {
  return [...axis.found.flatMap(([value, text]) => [
    svg("line", { class: "axis", x1: at(value), x2: at(value), y1: plot.bottom, y2: plot.bottom + 5 }),
    svg("text", { x: at(value), y: plot.bottom + 18, "text-anchor": "middle" }, text)]),
  svg("line", { class: "axis", x1: plot.left, x2: plot.right, y1: plot.bottom, y2: plot.bottom }),
  svg("text", { x: plot.right, y: plot.bottom + 34, "text-anchor": "end", class: "strong" },
    `${words}, ${axis.unit}`)];
}
// The top of a scale of bytes. It has room for the budget, unless the rest would be too small then.
const FAR = 2.5;
const topOf = (most, limit) => 1.05 * (limit <= FAR * most ? Math.max(most, limit) : most);
function limitLine(plot, y, text) {
  if (y < plot.top) return [svg("text", { class: "limit-text", x: plot.right, y: plot.top - 10,
    "text-anchor": "end" }, `${text}, far above`)];
  return [svg("line", { class: "limit", x1: plot.left, x2: plot.right, y1: y, y2: y }),
    svg("text", { class: "limit-text", x: plot.right, y: y - 5, "text-anchor": "end" }, text)];
}
function picture(width, height, label, children) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    ...children);
}
const figure = (...children) => html("figure", {}, ...children);
const scroll = (child) => html("div", { class: "scroll" }, child);
