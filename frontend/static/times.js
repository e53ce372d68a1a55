// Shows every marked time in the reader's own zone, with UTC on hover (the server wrote it as the title), and reads the
// moments that people give in that zone. What is sent is always UTC.

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const MOMENT_INPUT = "input[type=datetime-local][data-moment]";
export const two = (number) => String(number).padStart(2, "0");

/** 13 Nov 09:00, in local time; with the year when it is another one. `until` "day" leaves the hours out. */
export function localText(iso, until = "minute", now = new Date()) {
  const at = new Date(iso);
  const year = at.getFullYear() === now.getFullYear() ? "" : ` ${at.getFullYear()}`;
  const day = `${at.getDate()} ${MONTHS[at.getMonth()]}${year}`;
  return until === "day" ? day : `${day} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** What a field for date and time holds, from UTC as the server wrote it: 2026-11-02T09:00 → 2026-11-02T18:00. */
export function localInput(utc) {
  const at = new Date(`${utc}Z`);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day}T${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** The moment that a local date and time is: 2026-11-02T18:00 → 2026-11-02T09:00:00Z. */
export function utcMoment(local) {
  return new Date(local).toISOString().replace(/\.\d+Z$/, "Z");
}

function show() {
  document.querySelectorAll("time[data-time]").forEach((time) => {
    time.textContent = localText(time.dateTime, time.dataset.time);
  });
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const words = document.querySelector("[data-zone]");
  if (words && zone !== "UTC") words.textContent = `Times are local (${zone}); hover shows UTC.`;
  document.querySelectorAll("[data-zone-name]").forEach((name) => (name.textContent = zone));
  // What the server wrote is UTC, once; what is typed later is not.
  document.querySelectorAll(`${MOMENT_INPUT}:not([data-local])`).forEach((input) => {
    input.dataset.local = "";
    if (input.defaultValue) input.value = localInput(input.defaultValue.slice(0, 16));
  });
}

if (typeof document !== "undefined") {
  show();
  document.addEventListener("gapwatch:refresh", show);
  document.addEventListener("formdata", ({ target, formData }) => {
    for (const input of target.querySelectorAll(MOMENT_INPUT))
      if (input.value) formData.set(input.name, utcMoment(input.value));
  });
}
