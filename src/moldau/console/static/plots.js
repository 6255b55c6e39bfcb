// Pictures, drawn as SVG: lines over time, bars, replicas and assignments as squares.

import { h, svg } from "./dom.js";
import { clock, count, short } from "./format.js";

// The ends of a plot that is shorter than this would have the same time in minutes.
const SECONDS_BELOW_MS = 5 * 60 * 1000;

/** points: [[ms, value], …]. A line with its area, the largest value at the left and times below. */
export function linePlot(label, points, options = {}) {
  const width = options.width ?? 640;
  const height = options.height ?? 140;
  const [left, right, top, bottom] = [44, 8, 10, 20];
  if (points.length < 2) return h("p", { class: "empty plot-empty" }, options.waiting ?? "Measuring…");
  const largest = niceMax(Math.max(...points.map((point) => point[1])));
  const [from, to] = [points[0][0], points.at(-1)[0]];
  const x = (at) => left + ((at - from) / Math.max(1, to - from)) * (width - left - right);
  const y = (value) => height - bottom - (value / largest) * (height - top - bottom);
  const line = points.map(([at, value], index) => `${index ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const area = `${line}L${x(to).toFixed(1)} ${y(0)}L${x(from).toFixed(1)} ${y(0)}Z`;
  const last = points.at(-1)[1];
  const isShort = to - from < SECONDS_BELOW_MS;
  return svg("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label}: ${short(last)} now, at most ${short(Math.max(...points.map((point) => point[1])))}` },
    [0, 0.5, 1].map((part) => [
      svg("line", { class: "grid", x1: left, x2: width - right, y1: y(largest * part), y2: y(largest * part) }),
      svg("text", { class: "tick", x: left - 6, y: y(largest * part) + 4, "text-anchor": "end" }, short(largest * part)),
    ]),
    svg("path", { class: "area", d: area }),
    svg("path", { class: "line", d: line }),
    svg("text", { class: "tick", x: left, y: height - 4 }, clock(from, isShort)),
    svg("text", { class: "tick", x: width - right, y: height - 4, "text-anchor": "end" }, clock(to, isShort)));
}

function niceMax(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}

/** rows: [{name, value, note, href}]. */
export function bars(label, rows, format = count) {
  const largest = Math.max(1, ...rows.map((row) => row.value));
  return h("ul", { class: "bars", "aria-label": label }, rows.map((row) => h("li", {},
    h("span", { class: "bar-name" }, row.href ? h("a", { href: row.href }, row.name) : row.name),
    h("span", { class: "bar-track", "aria-hidden": "true" }, h("span", { class: "bar-fill", width_percent: (row.value / largest) * 100 })),
    h("span", { class: "bar-value" }, format(row.value), row.note && h("small", {}, ` ${row.note}`)))));
}

const CELL = 16;
const COLUMNS_MAX = 64;
const PARTITIONS_MAX = 1024;

/** Brokers as rows, partitions as columns: ■ leads, □ in sync, ✕ not in sync. */
export function replicaPicture(topic) {
  const shown = topic.rows.slice(0, PARTITIONS_MAX);
  const brokers = [...new Set(shown.flatMap((row) => row.replicas))].sort((a, b) => a - b);
  const bands = [];
  for (let start = 0; start < shown.length; start += COLUMNS_MAX) bands.push(shown.slice(start, start + COLUMNS_MAX));
  const pictures = bands.map((band) => {
    const left = 74;
    const width = left + band.length * CELL + 4;
    const height = 18 + brokers.length * CELL + 2;
    return svg("svg", { class: "squares", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Replicas of partitions ${band[0].partition} to ${band.at(-1).partition} on ${brokers.length} brokers; the table below has the same as text` },
      band.map((row, column) => (column % 8 === 0 ? svg("text", { class: "tick", x: left + column * CELL + CELL / 2, y: 11, "text-anchor": "middle" }, row.partition) : null)),
      brokers.map((broker, line) => [
        svg("text", { class: "tick", x: left - 8, y: 18 + line * CELL + 12, "text-anchor": "end" }, `broker ${broker}`),
        band.map((row, column) => replicaSquare(row, broker, left + column * CELL, 18 + line * CELL)),
      ]));
  });
  return h("div", { class: "picture" },
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Picture of the replicas" }, pictures),
    legend([["leads", "lead"], ["in sync", "in-sync"], ["not in sync", "out"]]),
    topic.rows.length > PARTITIONS_MAX && h("p", { class: "quiet" }, `The first ${count(PARTITIONS_MAX)} of ${count(topic.rows.length)} partitions.`));
}

function replicaSquare(row, broker, x, y) {
  if (!row.replicas.includes(broker)) return null;
  const kind = !row.in_sync.includes(broker) ? "out" : row.leader === broker ? "lead" : "in-sync";
  const words = { out: "not in sync", lead: "leads", "in-sync": "in sync" }[kind];
  return square(kind, x, y, `partition ${row.partition}, broker ${broker}: ${words}`);
}

function square(kind, x, y, title) {
  const [near, far] = [3, CELL - 4];
  return svg("g", { class: `cell ${kind}`, transform: `translate(${x} ${y})` },
    svg("title", {}, title),
    svg("rect", { x: 1.5, y: 1.5, width: CELL - 3, height: CELL - 3, rx: 2 }),
    kind === "out" && svg("path", { d: `M${near + 1} ${near + 1}L${far} ${far}M${far} ${near + 1}L${near + 1} ${far}` }));
}

function legend(items) {
  return h("p", { class: "legend" }, items.map(([text, kind]) => h("span", {}, svg("svg", { width: CELL, height: CELL, viewBox: `0 0 ${CELL} ${CELL}`, "aria-hidden": "true" }, square(kind, 0, 0, text)), text)));
}

/** Members as rows, partitions as columns; a partition that nobody has stands in the last row. */
export function assignmentPicture(members, partitions) {
  const shown = partitions.slice(0, PARTITIONS_MAX);
  const rows = members.map((member) => ({ name: member.client_id || member.id, member }));
  const owned = new Set();
  for (const { member } of rows) for (const [topic, numbers] of Object.entries(member.assignment)) for (const number of numbers) owned.add(`${topic}\n${number}`);
  const nobody = shown.filter((each) => !owned.has(`${each.topic}\n${each.partition}`));
  if (nobody.length) rows.push({ name: "nobody", member: null });
  const left = 16 + 7 * Math.min(20, Math.max(...rows.map((row) => row.name.length), 6));
  const width = left + shown.length * CELL + 4;
  const height = 20 + rows.length * CELL + 2;
  const starts = shown.map((each, index) => (index === 0 || shown[index - 1].topic !== each.topic ? index : -1)).filter((index) => index >= 0);
  const picture = svg("svg", { class: "squares", width: Math.max(width, left + 120), height, viewBox: `0 0 ${Math.max(width, left + 120)} ${height}`, role: "img", "aria-label": `${members.length} members and ${partitions.length} partitions, ${nobody.length} of which nobody reads; the tables below have the same as text` },
    starts.map((index) => svg("text", { class: "tick", x: left + index * CELL, y: 11 }, cut(shown[index].topic, 30))),
    rows.map(({ name, member }, line) => [
      svg("text", { class: "tick", x: left - 8, y: 20 + line * CELL + 12, "text-anchor": "end" }, svg("title", {}, member?.id ?? name), cut(name, 22)),
      shown.map((each, column) => {
        const has = member ? (member.assignment[each.topic] ?? []).includes(each.partition) : nobody.includes(each);
        return has ? square(member ? "lead" : "out", left + column * CELL, 20 + line * CELL, `${each.topic}-${each.partition}: ${member ? name : "nobody reads it"}`) : square("none", left + column * CELL, 20 + line * CELL, `${each.topic}-${each.partition}`);
      }),
    ]));
  return h("div", { class: "picture" },
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Picture of the assignment" }, picture),
    legend([["reads it", "lead"], ["nobody reads it", "out"]]));
}

function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
