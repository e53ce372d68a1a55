// Makes one piece of the page equal to its newer version, touching only what differs: scroll, focus, open details,
// typed text and drawn figures stay as they are.

/** Whether `fresh` is the newer version of `old`, rather than something else in its place. */
export function isSame(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && (old.id ?? "") === (fresh.id ?? "");
}

/** The pairs of attributes to set and the names to remove, leaving out what only the browser or the reader changes. */
export function attributeChanges(old, fresh, kept) {
  const set = Object.entries(fresh).filter(([name, value]) => !kept.has(name) && old[name] !== value);
  const remove = Object.keys(old).filter((name) => !kept.has(name) && !(name in fresh));
  return { set, remove };
}

const KEPT = { DETAILS: new Set(["open"]), INPUT: new Set(["value", "checked"]) };
const KEPT_BY_FIGURES = new Set(["class", "data-state"]);
const NOTHING = new Set();

function attributesOf(element) {
  return Object.fromEntries([...element.attributes].map(({ name, value }) => [name, value]));
}

function morphAttributes(old, fresh) {
  const kept = "chart" in old.dataset ? KEPT_BY_FIGURES : (KEPT[old.nodeName] ?? NOTHING);
  const { set, remove } = attributeChanges(attributesOf(old), attributesOf(fresh), kept);
  set.forEach(([name, value]) => old.setAttribute(name, value));
  remove.forEach((name) => old.removeAttribute(name));
}

export function morph(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  // What somebody is typing or choosing is theirs.
  if (old.matches("textarea, select, [data-keep]") || old === document.activeElement) return;
  if (old.isEqualNode(fresh)) return;
  morphAttributes(old, fresh);
  if ("chart" in old.dataset) return; // its inside belongs to Plotly
  morphChildren(old, fresh);
}

function morphChildren(old, fresh) {
  let place = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const found = wanted.id ? [...old.children].find((child) => child.id === wanted.id) : null;
    if (found && found !== place) old.insertBefore(found, place);
    const there = found ?? place;
    if (there && isSame(there, wanted)) {
      place = there.nextSibling;
      morph(there, wanted);
    } else old.insertBefore(document.importNode(wanted, true), place);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}
