// Keyboard triage. On a list: j and k move, Enter opens, x ticks. On incidents: a acknowledges. On an episode: n opens
// the next, l goes to the categories, m to the note, s saves and opens the next. u takes the last save back.
// Whatever has a data-key is pressed by that key: the categories.

const KEYS = { a: "acknowledge", j: "down", k: "up", l: "label", m: "note", n: "next", s: "save", u: "undo", x: "tick" };
const TYPING = "textarea, select, input:not([type=radio], [type=checkbox])";

/** What a key means, unless somebody is typing or holds a modifier. */
export function meaning(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.(TYPING)) return null;
  if (KEYS[event.key]) return { act: KEYS[event.key] };
  return /^[0-9a-z]$/.test(event.key) ? { act: "press", key: event.key } : null;
}

function move(by) {
  const rows = [...document.querySelectorAll("[data-row] a[data-open]")];
  const here = rows.findIndex((link) => link.closest("[data-row]") === chosenRow());
  rows[Math.max(0, Math.min(rows.length - 1, here + by))]?.focus();
}

const chosenRow = () => document.activeElement.closest("[data-row]");

/** The button of the chosen row; on the page of one incident, its own. */
function acknowledge() {
  const place = document.querySelector("[data-row]") ? chosenRow() : document;
  place?.querySelector("[data-acknowledge]")?.click();
}

const click = (selector) => document.querySelector(selector)?.click();

const ACTS = {
  acknowledge,
  down: () => move(1),
  up: () => move(-1),
  next: () => click("[data-next]"),
  label: () => document.querySelector("[data-categories] input:checked")?.focus(),
  note: () => document.querySelector("[data-note]")?.focus(),
  save: () => click("[data-save]"),
  undo: () => click("[data-undo]"),
  tick: () => chosenRow()?.querySelector("[data-tick]")?.click(),
  press: ({ key }) => click(`[data-key="${key}"]`),
};

const ticks = () => [...document.querySelectorAll("[data-tick]")];

/** How many episodes are ticked, in words and on the box that ticks all. */
function sayTicked() {
  const words = document.querySelector("[data-chosen]");
  if (!words) return;
  const ticked = ticks().filter((box) => box.checked).length;
  words.textContent = ticked ? `Label ${ticked} ticked episode${ticked === 1 ? "" : "s"}` : "Label the ticked episodes";
  const all = document.querySelector("[data-tick-all]");
  all.hidden = ticks().length === 0;
  all.checked = ticked > 0 && ticked === ticks().length;
  all.indeterminate = ticked > 0 && !all.checked;
}

if (typeof document !== "undefined") {
  document.addEventListener("keydown", (event) => {
    const meant = meaning(event);
    if (meant && (meant.act !== "press" || document.querySelector(`[data-key="${meant.key}"]`))) {
      event.preventDefault();
      ACTS[meant.act](meant);
    } else if (event.key === "Escape") document.activeElement?.blur();
  });
  document.addEventListener("change", ({ target }) => {
    if (target.matches("[data-tick-all]")) ticks().forEach((box) => (box.checked = target.checked));
    if (target.matches("[data-tick], [data-tick-all]")) sayTicked();
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-several]") || ticks().some((box) => box.checked)) return;
    event.preventDefault();
    document.querySelector("[data-chosen]").textContent = "Tick at least one episode first";
  });
  document.addEventListener("gapwatch:refresh", sayTicked);
  sayTicked();
  // Back from acting on a row it is still the chosen one; the browser itself has dealt with the fragment by then.
  addEventListener("load", () =>
    setTimeout(() => document.getElementById(location.hash.slice(1))?.querySelector("a[data-open]")?.focus()),
  );
}
