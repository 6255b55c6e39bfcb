// Numbers, sizes, times and durations for people.

const whole = new Intl.NumberFormat("en-GB");
const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

export function count(value) {
  return value === null || value === undefined ? "–" : whole.format(value);
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  let unit = 0;
  let number = value;
  while (number >= 1000 && unit < UNITS.length - 1) {
    number /= 1000;
    unit += 1;
  }
  return unit === 0 ? `${whole.format(value)} B` : `${number < 10 ? number.toFixed(2) : number < 100 ? number.toFixed(1) : number.toFixed(0)} ${UNITS[unit]}`;
}

export function rate(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0/s";
  return value < 10 ? `${value.toFixed(1)}/s` : `${whole.format(Math.round(value))}/s`;
}

export function short(value) {
  if (value >= 1e9) return `${(value / 1e9).toFixed(1)}G`;
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)}M`;
  if (value >= 1e4) return `${(value / 1e3).toFixed(0)}k`;
  if (value >= 1e3) return `${(value / 1e3).toFixed(1)}k`;
  return value >= 10 || value === Math.round(value) ? String(Math.round(value)) : value.toFixed(1);
}

const two = (number) => String(number).padStart(2, "0");

export function time(ms) {
  const moment = new Date(ms);
  if (ms === null || ms === undefined || Number.isNaN(moment.getTime())) return ms === null || ms === undefined ? "–" : String(ms);
  if (ms < 0) return "no time";
  const day = `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
  const clock = `${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}.${String(moment.getMilliseconds()).padStart(3, "0")}`;
  return `${day} ${clock}`;
}

/** Hours and minutes, with seconds if wanted; of another day with its date. */
export function clock(ms, withSeconds = false) {
  const moment = new Date(ms);
  const today = new Date();
  const at = `${two(moment.getHours())}:${two(moment.getMinutes())}${withSeconds ? `:${two(moment.getSeconds())}` : ""}`;
  return moment.toDateString() === today.toDateString() ? at : `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())} ${at}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds === 0) return "0 s";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} d`;
}

export function plural(number, noun, many = `${noun}s`) {
  return `${count(number)} ${number === 1 ? noun : many}`;
}

/** How many a list has, and of how many where a search leaves some out. */
export function shownOf(total, ofAll, noun, many = `${noun}s`) {
  return total === ofAll ? plural(total, noun, many) : `${count(total)} of ${plural(ofAll, noun, many)}`;
}

/** A time that people typed, in milliseconds: a number, a date and time, or how long ago (-15m). null: none of these. */
export function readTime(text) {
  const trimmed = text.trim();
  if (/^\d+$/.test(trimmed)) return Number(trimmed);
  const ago = /^-(\d+(?:\.\d+)?)(s|m|h|d)$/.exec(trimmed);
  if (ago) return Date.now() - Number(ago[1]) * { s: 1e3, m: 6e4, h: 36e5, d: 864e5 }[ago[2]];
  const moment = new Date(trimmed.replace(" ", "T"));
  return Number.isNaN(moment.getTime()) ? null : moment.getTime();
}

/** '0,2,5-7' as a list of numbers; [] for nothing, null for what is no list. */
export function readPartitions(text) {
  const found = [];
  for (const part of text.split(",").map((item) => item.trim()).filter(Boolean)) {
    const range = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (!range) return null;
    const last = Number(range[2] ?? range[1]);
    if (last - Number(range[1]) > 10000) return null;
    for (let number = Number(range[1]); number <= last; number += 1) found.push(number);
  }
  return found;
}
