"use strict";
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

const rows = $$("#layers tbody tr");
const boxes = new Map($$(".box").map((box) => [Number(box.dataset.index), box]));
const arrows = $$(".arrows path");
const details = JSON.parse($("#details").textContent);
const picture = $(".picture");
const svg = $("svg", picture);

// Sort and filter -----------------------------------------------------------------------------------------------------

const text = (row, name) => $(`.${name}`, row).textContent;
const values = {
  order: (row) => Number(row.dataset.index),
  kernel: (row) => text(row, "kernel"),
  precision: (row) => text(row, "precision"),
  work: (row) => Number(row.dataset.work),
  time: (row) => Number(row.dataset.time),
};

function sort(header) {
  const value = values[$("button", header).dataset.column];
  const before = header.getAttribute("aria-sort");
  const numbersFirst = header.classList.contains("number") ? "descending" : "ascending";
  const direction = before ? (before === "ascending" ? "descending" : "ascending") : numbersFirst;
  $$("#layers th").forEach((each) => each.removeAttribute("aria-sort"));
  header.setAttribute("aria-sort", direction);
  const sign = direction === "ascending" ? 1 : -1;
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  rows.sort((a, b) => sign * compare(value(a), value(b)) || values.order(a) - values.order(b));
  $("#layers tbody").append(...rows);
}

const contents = new Map(); // of rows, in small letters

function filter() {
  const words = $("#filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const kind = $(".kinds [aria-pressed=true]").dataset.kind;
  let count = 0;
  for (const row of rows) {
    if (!contents.has(row)) contents.set(row, row.textContent.toLowerCase());
    row.hidden = (kind && row.dataset.kind !== kind) || !words.every((word) => contents.get(row).includes(word));
    count += !row.hidden;
  }
  $("#shown").textContent = count === rows.length ? `${count} layers` : `${count} of ${rows.length} layers`;
}

// The picture ---------------------------------------------------------------------------------------------------------

const near = new Map([...boxes.keys()].map((index) => [index, []]));
const leaving = new Map([...boxes.keys()].map((index) => [index, []]));
for (const arrow of arrows) {
  const [from, to] = [Number(arrow.dataset.from), Number(arrow.dataset.to)];
  leaving.get(from).push(arrow);
  near.get(from).push(to);
  near.get(to).push(from);
}

/** The layers nearest to one, at most `most` of them. */
function neighbourhood(index, most = 24) {
  const found = new Set([index]);
  for (const each of found) {
    for (const next of near.get(each)) if (found.size < most) found.add(next);
  }
  return found;
}

/** Draw these layers and the arrows between them. Others are not in the document: hidden ones would cost time as well. */
function show(found) {
  const between = [...found].flatMap((index) => leaving.get(index)).filter((arrow) => found.has(Number(arrow.dataset.to)));
  $(".arrows").replaceChildren(...between);
  $(".boxes").replaceChildren(...[...found].map((index) => boxes.get(index)));
  const bounds = svg.getBBox();
  const [x, y, width, height] = [bounds.x - 14, bounds.y - 14, bounds.width + 28, bounds.height + 28].map(Math.round);
  svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
  zoom(1);
}

let scale = 1;

/** Draw at a multiple of the natural size; the point under (x, y) of the window stays, or the middle. */
function zoom(to, x, y) {
  const { width, height } = svg.viewBox.baseVal;
  const outer = picture.getBoundingClientRect();
  const [left, top] = x === undefined ? [outer.width / 2, outer.height / 2] : [x - outer.left, y - outer.top];
  const grown = to / scale;
  const [across, down] = [(picture.scrollLeft + left) * grown - left, (picture.scrollTop + top) * grown - top];
  scale = to;
  svg.setAttribute("width", width * scale);
  svg.setAttribute("height", height * scale);
  picture.scrollTo(across, down);
}

const between = (low, value, high) => Math.min(Math.max(value, low), high);
const zoomBy = (factor, x, y) => zoom(between(0.02, scale * factor, 4), x, y);

function fit() {
  const { width, height } = svg.viewBox.baseVal;
  zoom(between(0.02, Math.min(picture.clientWidth / width, picture.clientHeight / height), 1));
}

/** Move the picture with the pointer; true once it has moved, and then it was no click. */
let moved = false;
function drag(start) {
  if (start.button !== 0 || start.pointerType === "touch") return;
  const [left, top] = [picture.scrollLeft, picture.scrollTop];
  moved = false;
  const move = (event) => {
    const [across, down] = [event.clientX - start.clientX, event.clientY - start.clientY];
    moved ||= Math.hypot(across, down) > 4;
    if (moved) picture.scrollTo(left - across, top - down);
    picture.classList.toggle("held", moved);
  };
  const end = () => {
    window.removeEventListener("pointermove", move);
    picture.classList.remove("held");
  };
  window.addEventListener("pointermove", move);
  window.addEventListener("pointerup", end, { once: true });
}

function element(name, content, more = {}) {
  const made = Object.assign(document.createElement(name), more);
  made.append(...[content].flat());
  return made;
}

/** A text whose long names are broken at their separators, and between words written together. */
function breakable(text) {
  return text.split(/(?<=[/_:=;,@|])(?=\w)|(?<=\.)(?=[A-Za-z_])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/).flatMap((part) => [document.createElement("wbr"), part]);
}

function describe(index) {
  const detail = details[index];
  const row = $(`#row${index}`);
  const box = boxes.get(index);
  const parts = [element("h3", breakable($("title", box).textContent))];
  if (row && $(".why", row)) parts.push(element("p", breakable($(".why", row).textContent), { className: "why" }));
  const facts = [["What helps", detail.help], ["Risk", detail.risk]];
  if (row) facts.unshift(["Kernel", `${text(row, "kernel")}, ${text(row, "precision")}`]);
  facts.push(["Holds", detail.operations.join(", ")], ["Above it", detail.upstream.join(" ← ")]);
  for (const [transformation, outcome, why] of detail.events) {
    facts.push([outcome, why ? `${transformation}: ${why}` : transformation]);
  }
  const list = element("dl", facts.filter(([, value]) => value).flatMap(([name, value]) => [element("dt", name), element("dd", breakable(value))]));
  $("#detail").replaceChildren(...parts, list);
}

let marked = null; // the box of the chosen layer

function choose(index, scrollTable = false) {
  const before = $("tr.chosen");
  [before, marked].forEach((each) => each && each.classList.remove("chosen"));
  if (before) $("button", before).removeAttribute("aria-current");
  const [row, box] = [$(`#row${index}`), boxes.get(index)];
  marked = box;
  box.classList.add("chosen");
  describe(index);
  if (picture.classList.contains("near")) show($("#whole").checked ? new Set(boxes.keys()) : neighbourhood(index));
  if (scale < 0.6) zoom(1); // from afar nothing can be read
  const [outer, inner] = [picture.getBoundingClientRect(), box.getBoundingClientRect()];
  picture.scrollTop += inner.top - outer.top - (outer.height - inner.height) / 2;
  picture.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
  if (!row) return;
  row.classList.add("chosen");
  $("button", row).setAttribute("aria-current", "true");
  if (scrollTable && !row.hidden) row.scrollIntoView({ block: "nearest" });
}

let chosen = rows.length ? Number(rows[0].dataset.index) : null;

function pick(index, options = {}) {
  chosen = index;
  choose(index, options.scrollTable);
  if (!options.scrollPicture) return;
  const stacked = $("aside").clientWidth > $(".columns").clientWidth * 0.9;
  if (stacked) picture.scrollIntoView({ block: "start" });
  else boxes.get(index).scrollIntoView({ block: "nearest", inline: "nearest" });
}

$$("#layers th").forEach((header) => $("button", header).addEventListener("click", () => sort(header)));
$("#filter").addEventListener("input", filter);
$$(".kinds button").forEach((button) =>
  button.addEventListener("click", () => {
    $$(".kinds button").forEach((each) => each.setAttribute("aria-pressed", each === button));
    filter();
  }),
);
rows.forEach((row) => row.addEventListener("click", () => pick(Number(row.dataset.index), { scrollPicture: true })));
boxes.forEach((box, index) => box.addEventListener("click", () => moved || pick(index, { scrollTable: true })));
picture.addEventListener("pointerdown", drag);
picture.addEventListener(
  "wheel",
  (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoomBy(event.deltaY < 0 ? 1.15 : 1 / 1.15, event.clientX, event.clientY);
  },
  { passive: false },
);
picture.addEventListener("keydown", (event) => {
  const action = { "+": () => zoomBy(1.25), "=": () => zoomBy(1.25), "-": () => zoomBy(0.8), 0: fit }[event.key];
  if (action && !event.ctrlKey && !event.metaKey) action();
});
$$("[data-zoom]").forEach((button) =>
  button.addEventListener("click", () => {
    const how = button.dataset.zoom;
    if (how === "fit") fit();
    else if (how === "1:1") zoom(1);
    else zoomBy(Number(how));
  }),
);
$$("[data-layer]").forEach((button) =>
  button.addEventListener("click", () => pick(Number(button.dataset.layer), { scrollPicture: true, scrollTable: true })),
);
if ($("#whole")) $("#whole").addEventListener("change", () => choose(chosen));

const first = $(".bottlenecks [data-layer]"); // the slowest layer of the first bottleneck
if (first) chosen = Number(first.dataset.layer);
if (chosen !== null) choose(chosen);
