// Small courtesies of forms: filters that apply themselves, empty fields kept out of addresses, copying, asking twice.

/** The fields of a filter form that say something. */
export function meaningful(pairs) {
  return pairs.filter(([, value]) => value !== "");
}

function apply(form) {
  const query = new URLSearchParams(meaningful([...new FormData(form)])).toString();
  location.assign(`${form.action.split("?")[0]}${query ? `?${query}` : ""}`);
}

async function copy(button) {
  const text = document.getElementById(button.dataset.copy).textContent.trim();
  await navigator.clipboard.writeText(text);
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = label), 1500);
}

/** Times that a form speaks of are on the clock of its reader. */
function sayZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone) return;
  document.querySelectorAll("[data-zone-field]").forEach((field) => (field.value = zone));
  document.querySelectorAll("[data-zone-words]").forEach((one) => {
    one.textContent = one.dataset.zoneWords.replace("{}", zone);
  });
}

if (typeof document !== "undefined") {
  sayZone();
  document.addEventListener("gapwatch:refresh", sayZone);
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("form.filters")) {
      event.preventDefault();
      apply(form);
    }
    const question = event.submitter?.dataset.ask ?? form.dataset.ask;
    if (question && !confirm(question)) event.preventDefault();
  });
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form.filters");
    if (!form || !event.target.matches("select")) return;
    // A window of the list is chosen instead of moments of one's own.
    if (event.target.name === "since") form.querySelectorAll("[data-moment]").forEach((input) => (input.value = ""));
    apply(form);
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) copy(button);
    const menu = document.querySelector("details.menu[open]");
    if (menu && !menu.contains(event.target)) menu.open = false;
  });
}
