// Times as people read them. The API server's clock counts, not the browser's.
import { signal } from "@preact/signals";
import type { MomentForm } from "./model";

const second = 1000;
let ahead = 0; // of the browser's clock, in ms

export const now = signal(Date.now());

export function hearTime(serverNow: string): void {
  ahead = Date.parse(serverNow) - Date.now();
  now.value = Date.now() + ahead;
}

export function startClock(): void {
  setInterval(() => (now.value = Date.now() + ahead), second);
}

const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]] as const;

// "1m30s", "2d3h": at most two units, never negative.
export function spanText(milliseconds: number): string {
  let rest = Math.max(0, Math.floor(milliseconds / second));
  const first = units.findIndex(([, length]) => rest >= length);
  if (first < 0) return "0s";
  let text = "";
  for (const [unit, length] of units.slice(first, first + 2)) {
    if (rest >= length) text += `${Math.floor(rest / length)}${unit}`;
    rest %= length;
  }
  return text;
}

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// "14:03:20", or "Nov 25 14:03" if it is another day than `at`. In UTC.
export function clockText(time: number, at: number): string {
  const iso = new Date(time).toISOString();
  const today = new Date(at).toISOString();
  if (iso.slice(0, 10) === today.slice(0, 10)) return iso.slice(11, 19);
  const day = `${months[Number(iso.slice(5, 7)) - 1]} ${iso.slice(8, 10)}`;
  const year = iso.slice(0, 4) === today.slice(0, 4) ? "" : ` ${iso.slice(0, 4)}`;
  return `${day}${year} ${iso.slice(11, 16)}`;
}

export function momentText(time: number, at: number): string {
  const clock = `(${clockText(time, at)} UTC)`;
  if (time <= at && at - time < second) return `just now ${clock}`;
  if (time > at) return `in ${spanText(Math.ceil((time - at) / second) * second)} ${clock}`;
  return `${spanText(at - time)} ago ${clock}`;
}

// As the plugin renders each form: plugin/explain/moments_text.h.
export function formText(time: number, form: MomentForm, at: number): string {
  switch (form) {
    case "moment":
      return momentText(time, at);
    case "due":
      if (time > at) return momentText(time, at);
      return `due ${momentText(time, at)}${at - time <= 5 * second ? ", being done now" : ""}`;
    case "ago":
      return `${spanText(at - time)} ago`;
    case "for":
      return spanText(at - time);
    case "clock":
      return clockText(time, at);
  }
}
