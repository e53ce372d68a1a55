// Draws every element with data-chart from the JSON island it names:
//   an element with data-chart="fig-ledger", and a script of type application/json with that id.
// Figures are Plotly dicts whose colours are CSS tokens, "var(--sim)". The tokens are read from app.css when drawing, so
// light, dark and print need no second figure. "narrow" holds dotted-path changes for slim columns:
//   {"layout.margin.l": 96, "data.3.visible": false}
// Moments are written in UTC, "2026-11-02T09:14:03Z", and drawn in the reader's own time; within words they stand in
// braces, "change point {2026-11-02T09:14:03Z}".
import { localText, two } from "./times.js";

const NARROW = 560; // px of the figure, not of the window
const CONFIG = { displayModeBar: false, responsive: false, showTips: false };
const drawing = new WeakMap(); // figure -> promise of its last drawing
const drawnAt = new WeakMap(); // figure -> width it was drawn for
const drawnFrom = new WeakMap(); // figure -> the island's text it was drawn from
const TOKEN = /^var\((--[\w-]+)\)$/;
const MOMENT = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const SAID_MOMENT = /\{(\d{4}-\d\d-\d\dT[\d:.]+Z)\}/g;

/** A moment as Plotly draws it without shifting: local, and without a zone. */
export function localMoment(iso) {
  const at = new Date(iso);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day}T${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** A copy of `value` in which every "var(--token)" became what `colour(token)` answers, and every moment local. */
export function withColours(value, colour) {
  if (typeof value === "string") {
    const token = TOKEN.exec(value);
    if (token) return colour(token[1]);
    return MOMENT.test(value) ? localMoment(value) : value.replace(SAID_MOMENT, (_, iso) => localText(iso));
  }
  if (Array.isArray(value)) return value.map((item) => withColours(item, colour));
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withColours(item, colour)]));
  return value;
}

/** A copy of `figure` with dotted paths set: {"layout.margin.l": 96}. */
export function withChanges(figure, changes = {}) {
  const copy = structuredClone(figure);
  for (const [path, value] of Object.entries(changes)) {
    const keys = path.split(".");
    const last = keys.pop();
    const parent = keys.reduce((node, key) => (node[key] ??= {}), copy);
    parent[last] = value;
  }
  return copy;
}

/** The one Plotly template: thin axes, quiet grid, the page's own type. `colour` answers for tokens. */
export function template(colour, family) {
  const axis = {
    color: colour("--ink-3"), gridcolor: colour("--line"), linecolor: colour("--line-strong"),
    gridwidth: 1, zeroline: false, showline: false, ticks: "", automargin: false, fixedrange: true,
    tickfont: { size: 12, color: colour("--ink-2") }, title: { font: { size: 12, color: colour("--ink-3") }, standoff: 8 },
  };
  return {
    layout: {
      font: { family, size: 12, color: colour("--ink") },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 48, r: 16, t: 8, b: 40 }, showlegend: false, dragmode: false,
      hovermode: "closest", hoverdistance: 24, bargap: 0.34,
      hoverlabel: {
        bgcolor: colour("--surface"), bordercolor: colour("--line-strong"), align: "left",
        font: { family, size: 13, color: colour("--ink") },
      },
      xaxis: axis, yaxis: { ...axis, showgrid: false },
    },
  };
}

/** Reads tokens as the browser resolves them (light-dark() included). */
function palette(element) {
  const probe = document.createElement("i");
  probe.hidden = true;
  document.body.append(probe);
  const seen = new Map();
  const colour = (token) => {
    if (!seen.has(token)) {
      probe.style.color = `var(${token})`;
      seen.set(token, getComputedStyle(probe).color);
    }
    return seen.get(token);
  };
  return { colour, family: getComputedStyle(element).fontFamily, done: () => probe.remove() };
}

async function draw(element) {
  const island = document.getElementById(element.dataset.chart);
  // The page went on without this figure while its drawing waited for its turn.
  if (!island) return;
  try {
    const { narrow, ...figure } = JSON.parse(island.textContent);
    drawnFrom.set(element, island.textContent);
    const shown = element.clientWidth < NARROW ? withChanges(figure, narrow) : figure;
    const { colour, family, done } = palette(element);
    const { data, layout } = withColours(shown, colour);
    // Width and height are said outright: with autosize, react() fits the margins to the figure's former width.
    const size = { width: element.clientWidth, height: element.clientHeight };
    await window.Plotly.react(element, data, { uirevision: "kept", ...layout, ...size, template: template(colour, family) }, CONFIG);
    done();
    if (element.dataset.state !== "drawn") element.on("plotly_click", ({ points }) => open(points[0]));
    element.dataset.state = "drawn";
  } catch (error) {
    element.dataset.state = "error";
    console.error(`figure ${element.dataset.chart}:`, error);
  }
}

/** One drawing at a time for each figure: Plotly must not be asked again while it draws. */
function queue(element) {
  drawnAt.set(element, element.clientWidth);
  drawing.set(element, (drawing.get(element) ?? Promise.resolve()).then(() => draw(element)));
}

/** Where the episodes behind a mark are listed: {"href"} in its customdata, or meta.episodes of a line between the last two
 *  of customdata, in seconds. The table below has the same links. */
export function hrefOf(point) {
  const { customdata, data } = point ?? {};
  if (!data?.meta?.episodes || !Array.isArray(customdata)) return customdata?.href;
  const [since, until] = customdata.slice(-2).map((seconds) => new Date(1000 * seconds).toISOString());
  return `${data.meta.episodes}&since=${since}&until=${until}`;
}

function open(point) {
  const href = hrefOf(point);
  if (href) location.assign(href);
}

/** A figure as a file: drawn anew on white, in the light colours, at twice the size for pixels. */
async function save(button) {
  const { figure, format } = button.dataset;
  const element = document.querySelector(`[data-chart="${figure}"]`);
  const size = { width: Math.max(element.clientWidth, 800), height: element.clientHeight };
  const image = await window.Plotly.toImage(element, { format, ...size, scale: format === "png" ? 2 : 1 });
  const link = document.createElement("a");
  link.href = image;
  link.download = `${figure.replace(/^fig-/, "")}.${format}`;
  link.click();
}

function start() {
  const figures = () => [...document.querySelectorAll("[data-chart]")];
  const wanted = new Set();
  const redraw = () => wanted.forEach(queue);
  const near = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries)
      if (isIntersecting && !wanted.has(target)) {
        wanted.add(target);
        near.unobserve(target);
        size.observe(target); // its first call draws
      }
  }, { rootMargin: "600px" });
  const size = new ResizeObserver((entries) => {
    for (const { target } of entries) if (target.clientWidth !== drawnAt.get(target)) queue(target);
  });
  figures().forEach((figure) => near.observe(figure));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  document.addEventListener("gapwatch:theme", redraw);
  addEventListener("beforeprint", () => figures().forEach(queue));
  document.addEventListener("gapwatch:refresh", () => {
    for (const figure of figures()) {
      const island = document.getElementById(figure.dataset.chart);
      if (!wanted.has(figure)) near.observe(figure);
      else if (drawnFrom.get(figure) !== island?.textContent) queue(figure);
    }
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-figure]");
    if (button) save(button);
  });
}

if (typeof document !== "undefined") start();
