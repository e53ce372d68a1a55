// Keeps an open page up to date: asks for the project's version every few seconds, and when it moved fetches the page
// anew and morphs its main part. Asks only while somebody looks.
import { Idiomorph } from "./vendor/idiomorph/idiomorph.esm.js";

export const EVERY_MS = 2500;
const STALE_AFTER_MS = 15000;
// What the reader or Plotly changes, and the server knows nothing of.
const KEPT = { DETAILS: ["open"], INPUT: ["value", "checked"] };
const KEPT_BY_FIGURES = ["class", "data-state"];
const MORPHING = {
  ignoreActive: true,
  callbacks: {
    beforeNodeMorphed: (old, fresh) => !old.isEqualNode(fresh) && !old.matches?.("textarea, select, [data-keep]"),
    beforeAttributeUpdated: (name, element) => !isKept(name, element),
    beforeNodeRemoved: (node) => !node.parentElement?.closest("[data-chart]"), // a figure's inside is Plotly's
  },
};

/** Whether an attribute stays as it is in the open page. */
export function isKept(name, { nodeName, dataset }) {
  return ("chart" in dataset ? KEPT_BY_FIGURES : (KEPT[nodeName] ?? [])).includes(name);
}

/** How long to wait: longer after failures, and never so short that a slow page keeps the server busy. */
export function pause(failures, lastFetchMs) {
  return Math.min(60000, Math.max(EVERY_MS * 2 ** failures, 10 * lastFetchMs));
}

async function start() {
  const { liveUrl } = document.body.dataset;
  let version = document.body.dataset.liveVersion;
  let failures = 0;
  let fetchMs = 0;
  let lastSeen = Date.now();
  let timer = null;
  let asking = false;

  const freshness = document.querySelector("[data-freshness]");
  const sayFreshness = () => {
    const stale = failures > 0 && Date.now() - lastSeen > STALE_AFTER_MS;
    const since = new Date(lastSeen).toTimeString().slice(0, 5);
    freshness.textContent = stale ? `Not updated since ${since}: the service does not answer.` : "";
  };

  async function refresh() {
    const began = performance.now();
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "error" });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    // Touches only what differs: scroll, focus, open details, typed text and drawn figures stay as they are.
    for (const id of ["main", "nav"])
      Idiomorph.morph(document.getElementById(id), fresh.getElementById(id), MORPHING);
    fetchMs = performance.now() - began;
    document.dispatchEvent(new CustomEvent("gapwatch:refresh"));
    return fresh.body.dataset.liveVersion;
  }

  async function ask() {
    asking = true;
    try {
      const answer = await fetch(liveUrl, { headers: { Accept: "application/json" } });
      if (answer.status === 401) return stop("You are signed out. Load the page again to sign in.");
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const now = (await answer.json()).version;
      if (now !== version) version = await refresh();
      failures = 0;
      lastSeen = Date.now();
    } catch {
      failures += 1; // the service restarts, or the network is away: ask again later
    } finally {
      asking = false;
    }
    sayFreshness();
    plan();
  }

  function stop(why) {
    freshness.textContent = why;
    document.removeEventListener("visibilitychange", plan);
  }

  function plan() {
    clearTimeout(timer);
    if (document.hidden || asking) return;
    timer = setTimeout(ask, pause(failures, fetchMs));
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) clearTimeout(timer);
    else if (!asking) ask(); // whoever comes back sees the newest at once
  });
  plan();
}

if (typeof document !== "undefined" && document.querySelector("main:not([data-still])")) start();
