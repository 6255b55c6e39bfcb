// The frame around all pages: navigation, routes, keyboard, theme, and pages that refresh themselves.

import { ApiError, loadSession, post, session, whenLoginIsWanted } from "./api.js";
import { openDialog } from "./dialogs.js";
import { h, isSelecting, replace } from "./dom.js";
import { errorBox } from "./widgets.js";

const main = document.getElementById("main");
const RETRY_MS = 2500;

// name, path, key behind g, whether it is there
const PLACES = [
  ["Overview", "/", "o"],
  ["Topics", "/topics", "t"],
  ["Groups", "/groups", "c"],
  ["Brokers", "/brokers", "b"],
  ["Quorum", "/quorum", "k"],
  ["Transactions", "/transactions", "x"],
  ["Quotas", "/quotas", "q"],
  ["ACLs", "/acls", "a"],
  ["Users", "/users", "u"],
  ["Pipelines", "/pipelines", "p", () => session.has_pipelines],
];

// Pages are loaded when they are first shown.
const ROUTES = [
  [/^\/$/, () => import("./pages/overview.js")],
  [/^\/topics$/, () => import("./pages/topics.js")],
  [/^\/topics\/([^/]+)(?:\/([a-z]+))?$/, () => import("./pages/topic.js")],
  [/^\/groups$/, () => import("./pages/groups.js")],
  [/^\/groups\/([^/]+)$/, () => import("./pages/group.js")],
  [/^\/brokers$/, () => import("./pages/brokers.js")],
  [/^\/brokers\/(\d+)$/, () => import("./pages/broker.js")],
  [/^\/quorum$/, () => import("./pages/quorum.js")],
  [/^\/transactions(?:\/([^/]+))?$/, () => import("./pages/transactions.js")],
  [/^\/quotas$/, () => import("./pages/quotas.js")],
  [/^\/acls$/, () => import("./pages/acls.js")],
  [/^\/users$/, () => import("./pages/users.js")],
  [/^\/pipelines(?:\/(\d+)\/([^/]+))?$/, () => import("./pages/pipelines.js")],
];

let leaving = new AbortController();

/** What a page is given: its place, and ways to load things that end when it is left. */
class Page {
  constructor(parameters, signal) {
    this.parameters = parameters;
    this.signal = signal;
    this.query = new URLSearchParams(location.search);
  }

  title(text) {
    document.title = `${text} · Moldau console`;
  }

  /** Remembers what a page shows in its address, so that it can be passed on. */
  setQuery(values) {
    for (const [name, value] of Object.entries(values)) {
      if (value === "" || value === null || value === undefined || value === false) this.query.delete(name);
      else this.query.set(name, value === true ? "true" : value);
    }
    const text = this.query.toString();
    history.replaceState(history.state, "", text ? `${location.pathname}?${text}` : location.pathname);
  }

  /** Loads and shows, again and again where ms says so; what goes wrong is shown in place, and passes by itself. */
  live(container, ms, load, show) {
    let shown = false;
    let timer = 0;
    let turn = 0;
    const problem = h("div", { class: "problem-place" });
    container.before(problem);
    const run = async () => {
      clearTimeout(timer);
      if (this.signal.aborted) return;
      // Whoever typed on meanwhile wants the later response, whichever comes first.
      turn += 1;
      const mine = turn;
      let pause = ms;
      if (!document.hidden || !shown) {
        try {
          const data = await load(this.signal);
          if (this.signal.aborted || mine !== turn) return;
          replace(problem);
          if (!isSelecting(container) || !shown) {
            show(data);
            shown = true;
          }
        } catch (error) {
          if (this.signal.aborted || mine !== turn || error.name === "AbortError") return;
          if (!(error instanceof ApiError)) console.error(error);
          replace(problem, errorBox(error));
          if (!shown && !error.away) replace(container);
          pause = error.away ? RETRY_MS : ms;
        }
      }
      if (pause > 0 && !this.signal.aborted) timer = setTimeout(run, pause);
    };
    this.signal.addEventListener("abort", () => clearTimeout(timer));
    run();
    return run;
  }

  /** Does something every few milliseconds until the page is left. */
  every(ms, work) {
    const timer = setInterval(() => {
      if (!document.hidden) work();
    }, ms);
    this.signal.addEventListener("abort", () => clearInterval(timer));
  }
}

export function go(path) {
  history.pushState({}, "", path);
  showPage();
}

async function showPage() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const path = location.pathname.length > 1 ? location.pathname.replace(/\/$/, "") : location.pathname;
  drawSide(path);
  if (session.login_wanted) {
    const login = await import("./pages/login.js");
    if (!signal.aborted) login.show(main, new Page([], signal), enter);
    return;
  }
  for (const [pattern, load] of ROUTES) {
    const found = pattern.exec(path);
    if (found) {
      const page = await load();
      if (signal.aborted) return;
      replace(main);
      page.show(main, new Page(found.slice(1).map((part) => part && decodeURIComponent(part)), signal));
      window.scrollTo(0, 0);
      return;
    }
  }
  document.title = "Not there · Moldau console";
  replace(main, h("h1", {}, "Nothing is here"), h("p", {}, "This address belongs to no page. ", h("a", { href: "/" }, "The overview"), " leads on."));
}

async function enter() {
  await loadSession();
  await showPage();
}

function drawSide(path) {
  const here = PLACES.filter(([, home]) => home === "/" ? path === "/" : path === home || path.startsWith(`${home}/`)).at(-1)?.[1];
  const places = PLACES.filter(([, , , there]) => !there || there());
  replace(document.getElementById("side"),
    h("a", { class: "brand", href: "/" }, h("span", { class: "mark", "aria-hidden": "true" }, "≈"), "Moldau"),
    !session.login_wanted && h("nav", { "aria-label": "Pages" }, places.map(([name, home, key]) => h("a", { href: home, "aria-current": home === here ? "page" : undefined, title: `g ${key}` }, name))),
    h("div", { class: "side-end" },
      h("p", { class: "quiet where", title: session.bootstrap }, session.bootstrap),
      !session.login_wanted && !session.may_change && h("p", { class: "quiet" }, "read-only"),
      session.logged_in && h("p", { class: "quiet" }, session.user),
      h("div", { class: "side-buttons" },
        h("button", { type: "button", class: "plain", onclick: switchTheme, "data-focus": "theme" }, isDark() ? "Light" : "Dark"),
        h("button", { type: "button", class: "plain", onclick: showHelp, "aria-label": "Keyboard help", "data-focus": "help" }, "?"),
        session.logged_in && h("button", { type: "button", class: "plain", onclick: leave, "data-focus": "logout" }, "Log out"))));
  // On a narrow screen the pages stand in a row that scrolls: the one that is shown must be in sight.
  const nav = document.querySelector("#side nav");
  const current = nav?.querySelector("[aria-current]");
  if (current) nav.scrollLeft = current.offsetLeft - nav.offsetLeft - (nav.clientWidth - current.offsetWidth) / 2;
}

async function leave() {
  await post("/api/session/logout", {});
  await enter();
}

// Colours

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function switchTheme() {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("moldau-theme", theme);
  } catch {
    // It holds for this page then.
  }
  drawSide(location.pathname);
}

// Keyboard

let afterG = 0;

function isTyping(target) {
  return target.closest?.("input, textarea, select, [contenteditable]");
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && isTyping(event.target) && event.target.dataset.search) event.target.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (Date.now() - afterG < 1500) {
    afterG = 0;
    const place = PLACES.find(([, , key, there]) => key === event.key && (!there || there()));
    if (place && !session.login_wanted) {
      event.preventDefault();
      go(place[1]);
    }
    return;
  }
  const actions = {
    "/": () => main.querySelector("[data-search]")?.focus(),
    "?": showHelp,
    g: () => { afterG = Date.now(); },
    j: () => moveRow(1),
    k: () => moveRow(-1),
    l: () => main.querySelector("[data-live]")?.click(),
    "[": () => main.querySelector('[aria-label="Page before"]')?.click(),
    "]": () => main.querySelector('[aria-label="Next page"]')?.click(),
  };
  if (actions[event.key]) {
    event.preventDefault();
    actions[event.key]();
  }
});

function moveRow(step) {
  const rows = [...main.querySelectorAll("tbody tr")].map((row) => row.querySelector("a, button")).filter(Boolean);
  const at = rows.findIndex((item) => item.closest("tr").contains(document.activeElement));
  rows[Math.min(Math.max(at + step, 0), rows.length - 1)]?.focus();
}

function showHelp() {
  const keys = [
    ["/", "search on this page"],
    ["j  k", "next row, row before"],
    ["[  ]", "page before, next page"],
    ["l", "live, on a page with records"],
    ["?", "this help"],
    ["Esc", "closes a dialog"],
    ...PLACES.filter(([, , , there]) => !there || there()).map(([name, , key]) => [`g ${key}`, name]),
  ];
  openDialog("Keyboard", () => h("dl", { class: "keys" }, keys.map(([key, text]) => h("div", {}, h("dt", {}, key.split(" ").filter(Boolean).map((part) => h("kbd", {}, part))), h("dd", {}, text)))));
}

// Links within the console do not load it again.
document.addEventListener("click", (event) => {
  const anchor = event.target.closest?.("a[href]");
  if (!anchor || event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || anchor.target || anchor.download) return;
  const address = new URL(anchor.href);
  if (address.origin !== location.origin || address.pathname.startsWith("/api/") || address.hash) return;
  event.preventDefault();
  go(address.pathname + address.search);
  main.focus({ preventScroll: true });
});
window.addEventListener("popstate", showPage);
whenLoginIsWanted(showPage);

async function start() {
  for (;;) {
    try {
      await enter();
      return;
    } catch (error) {
      replace(main, errorBox(error));
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

start();
