// Keyboard triage. On a list: j and k move, Enter opens. On incidents: a acknowledges. On an episode: n opens the next,
// l goes to the label, m to the note, 1 to 6 choose a headline category, s saves and opens the next.

/** What a key means, unless somebody is typing or holds a modifier. */
export function meaning(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.("input, textarea, select")) return null;
  if (/^[1-6]$/.test(event.key)) return { act: "choose", place: Number(event.key) };
  return { a: { act: "acknowledge" }, j: { act: "down" }, k: { act: "up" }, n: { act: "next" }, l: { act: "label" }, m: { act: "note" }, s: { act: "save" } }[event.key] ?? null;
}

function move(by) {
  const rows = [...document.querySelectorAll("[data-row] a[data-open]")];
  const here = rows.findIndex((link) => link === document.activeElement);
  rows[Math.max(0, Math.min(rows.length - 1, here + by))]?.focus();
}

/** The button of the chosen row; on the page of one incident, its own. */
function acknowledge() {
  const rows = document.querySelector("[data-row]");
  const place = rows ? document.activeElement.closest("[data-row]") : document;
  place?.querySelector("[data-acknowledge]")?.click();
}

const ACTS = {
  acknowledge,
  down: () => move(1),
  up: () => move(-1),
  next: () => document.querySelector("[data-next]")?.click(),
  label: () => document.querySelector("[data-label]")?.focus(),
  note: () => document.querySelector("[data-note]")?.focus(),
  save: () => document.querySelector("[data-save-next]")?.click(),
  choose: ({ place }) => {
    const select = document.querySelector("[data-label]");
    if (select) select.value = select.querySelector(`[data-place="${place}"]`)?.value ?? select.value;
  },
};

if (typeof document !== "undefined") {
  document.addEventListener("keydown", (event) => {
    const meant = meaning(event);
    if (meant) {
      event.preventDefault();
      ACTS[meant.act](meant);
    } else if (event.key === "Escape") document.activeElement?.blur();
  });
  // Back from acting on a row it is still the chosen one; the browser itself has dealt with the fragment by then.
  addEventListener("load", () =>
    setTimeout(() => document.getElementById(location.hash.slice(1))?.querySelector("a[data-open]")?.focus()),
  );
}
