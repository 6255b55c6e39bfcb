// Elements from functions. Everything that is not an element becomes text: nothing in a record is ever markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else if (name === "value") element.value = value;
    else if (name === "checked" || name === "disabled" || name === "selected" || name === "hidden") element[name] = value;
    else if (name === "width_percent") element.style.setProperty("width", `${value}%`);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

let lastId = 0;

export function newId(prefix = "id") {
  lastId += 1;
  return `${prefix}-${lastId}`;
}

/** Puts new content in place of the old and gives the focus back to what had it, by its data-focus or its address. */
export function replace(container, ...children) {
  const active = document.activeElement;
  const again = container.contains(active) && active !== container ? findAgain(active) : null;
  const fresh = document.createDocumentFragment();
  append(fresh, children);
  container.replaceChildren(fresh);
  if (again) container.querySelector(again)?.focus({ preventScroll: true });
}

function findAgain(element) {
  const key = element.closest("[data-focus]")?.dataset.focus;
  if (key) return `[data-focus="${CSS.escape(key)}"]`;
  const name = element.getAttribute("href") ?? element.getAttribute("aria-label");
  return name === null ? null : `${element.localName}[${element.hasAttribute("href") ? "href" : "aria-label"}="${CSS.escape(name)}"]`;
}

/** Whether somebody is selecting text in there, which a refresh would take away. */
export function isSelecting(container) {
  const selection = document.getSelection();
  return Boolean(selection && !selection.isCollapsed && container.contains(selection.anchorNode));
}
