// Parts that pages are made of: tables, pagers, boxes, badges, tabs, fields.

import { h, newId, replace } from "./dom.js";
import { count } from "./format.js";

export function link(href, ...children) {
  return h("a", { href }, ...children);
}

export function topicPath(name, tab = "") {
  return `/topics/${encodeURIComponent(name)}${tab ? `/${tab}` : ""}`;
}

export function groupPath(id) {
  return `/groups/${encodeURIComponent(id)}`;
}

/** A word with a sign before it, so that it can be read without its colour. */
export function badge(text, level = "") {
  const sign = { good: "✓", warning: "!", bad: "✕" }[level];
  return h("span", { class: `badge ${level}` }, sign && h("span", { class: "sign", "aria-hidden": "true" }, sign), text);
}

export function card(title, ...children) {
  const id = newId("card");
  return h("section", { class: "card", "aria-labelledby": title ? id : undefined }, title && h("h2", { id }, title), ...children);
}

export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

export function empty(...children) {
  return h("p", { class: "empty" }, ...children);
}

export function errorBox(error) {
  const title = error.away ? "No response" : error.unsupported ? "Not offered by this broker" : error.status === 403 ? "Not allowed" : error.status === 404 ? "Not there" : "That did not work";
  return h("div", { class: "box bad", role: "alert" }, h("strong", {}, title), h("p", {}, error.message), error.away && h("p", { class: "quiet" }, "The page tries again by itself."));
}

/** columns: {key, label, number, sort, wide, cell(row)}; the first is the head of its row. */
export function table(label, columns, rows, options = {}) {
  const head = columns.map((column) => {
    const sorted = options.sort === column.sort && column.sort;
    const direction = sorted ? (options.descending ? "descending" : "ascending") : undefined;
    const content = column.sort && options.onsort
      ? h("button", { type: "button", class: "sorter", "data-focus": `sort-${column.sort}`, onclick: () => options.onsort(column.sort, sorted ? !options.descending : Boolean(column.number)) },
          column.label, h("span", { "aria-hidden": "true", class: "arrow" }, sorted ? (options.descending ? "▾" : "▴") : ""))
      : column.label || h("span", { class: "hidden" }, "Actions");
    return h("th", { scope: "col", class: column.number ? "number" : "", "aria-sort": direction }, content);
  });
  const body = rows.map((row) =>
    h("tr", { class: options.rowClass?.(row) },
      columns.map((column, index) => h(index === 0 && !options.plain ? "th" : "td", { scope: index === 0 && !options.plain ? "row" : undefined, class: [column.number ? "number" : "", column.class ?? ""].join(" ").trim() || undefined }, column.cell ? column.cell(row) : row[column.key]))));
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": label },
    h("table", {}, h("caption", { class: "hidden" }, label), h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
}

export function pager(page, onpage) {
  if (page.pages <= 1) return null;
  const button = (text, label, target, enabled) => h("button", { type: "button", "aria-label": label, "data-focus": `page-${label}`, disabled: !enabled, onclick: () => onpage(target) }, text);
  return h("nav", { class: "pager", "aria-label": "Pages of the list" },
    button("‹‹", "First page", 0, page.page > 0),
    button("‹", "Page before", page.page - 1, page.page > 0),
    h("span", {}, `Page ${count(page.page + 1)} of ${count(page.pages)}`),
    button("›", "Next page", page.page + 1, page.page < page.pages - 1),
    button("››", "Last page", page.pages - 1, page.page < page.pages - 1));
}

/** A search box that `/` goes to; tells what was typed when the typing pauses. */
export function searchBox(label, value, oninput) {
  let timer = 0;
  return h("input", {
    type: "search", class: "search", "aria-label": label, placeholder: `${label}  ( / )`, value, "data-search": "true", "data-focus": "search",
    autocomplete: "off", spellcheck: "false",
    oninput: (event) => {
      clearTimeout(timer);
      timer = setTimeout(() => oninput(event.target.value), 200);
    },
  });
}

export function field(label, control, hint) {
  const id = newId("field");
  control.id ||= id;
  const about = hint && newId("hint");
  if (about) control.setAttribute("aria-describedby", about);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, hint && h("small", { id: about }, hint));
}

/** choices: texts, or pairs of a value and its text. */
export function select(choices, value, properties = {}) {
  return h("select", properties, choices.map((choice) => {
    const [key, text] = Array.isArray(choice) ? choice : [choice, choice];
    return h("option", { value: key, selected: key === value }, text);
  }));
}

export function button(text, onclick, properties = {}) {
  return h("button", { type: "button", onclick, ...properties }, text);
}

export function tabs(label, items, current) {
  return h("nav", { class: "tabs", "aria-label": label }, items.map(([key, text, href]) => h("a", { href, "aria-current": key === current ? "page" : undefined }, text)));
}

export function crumbs(...parts) {
  return h("nav", { class: "crumbs", "aria-label": "Where this is" }, parts.map((part, index) => [index > 0 && h("span", { "aria-hidden": "true" }, "/"), part]));
}

export function copyButton(text, label = "Copy") {
  const control = button(label, async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
      control.textContent = "Copied";
    } catch {
      control.textContent = "The browser does not allow it";
    }
    setTimeout(() => { control.textContent = label; }, 1500);
  }, { class: "small" });
  return control;
}

export function stateBadge(state) {
  const level = { Stable: "good", Empty: "", Dead: "bad", PreparingRebalance: "warning", CompletingRebalance: "warning", Assigning: "warning", Reconciling: "warning", NotReady: "warning" }[state] ?? "";
  return badge(state || "unknown", level);
}

export { replace };
