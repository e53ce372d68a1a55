// Shows every marked time in the reader's own zone, with UTC on hover (the server wrote it as the title).

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (number) => String(number).padStart(2, "0");

/** 13 Nov 09:00, in local time; with the year when it is another one. */
export function localText(iso, now = new Date()) {
  const at = new Date(iso);
  const year = at.getFullYear() === now.getFullYear() ? "" : ` ${at.getFullYear()}`;
  return `${at.getDate()} ${MONTHS[at.getMonth()]}${year} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

function show() {
  document.querySelectorAll("time[data-time]").forEach((time) => {
    time.textContent = localText(time.dateTime);
  });
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const words = document.querySelector("[data-zone]");
  if (words && zone !== "UTC") words.textContent = `Times are local (${zone}); hover shows UTC.`;
}

if (typeof document !== "undefined") {
  show();
  document.addEventListener("gapwatch:refresh", show);
}
