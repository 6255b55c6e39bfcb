// The list of groups of all kinds, with lag in records and seconds of those that are shown.

import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { count, duration, shownOf } from "../format.js";
import { badge, empty, field, groupPath, link, pager, searchBox, select, stateBadge, table } from "../widgets.js";

export function show(main, page) {
  page.title("Groups");
  const state = {
    search: page.query.get("search") ?? "",
    type: page.query.get("type") ?? "",
    state: page.query.get("state") ?? "",
    sort: page.query.get("sort") ?? "id",
    descending: page.query.get("descending") === "true",
    page: Number(page.query.get("page") ?? 0),
  };
  const list = h("div", {});
  const filters = h("div", { class: "fields inline" });
  let [lags, last, drawnFilters] = [{}, null, ""];
  let refresh = () => {};
  const change = (values) => {
    Object.assign(state, { page: 0 }, values);
    page.setQuery({ ...state, sort: state.sort === "id" ? "" : state.sort, page: state.page || "" });
    refresh();
  };
  replace(main, h("h1", {}, "Groups"), h("div", { class: "toolbar" }, searchBox("Search groups", state.search, (search) => change({ search })), filters), list);
  const draw = () => replace(list, drawList(last, lags, state, change));
  refresh = page.live(list, 3000, (signal) => get("/api/groups", state, signal), (data) => {
    last = data;
    const key = JSON.stringify([data.types, data.states]);
    if (key !== drawnFilters) {
      drawnFilters = key;
      drawFilters(filters, data, state, change);
    }
    draw();
    if (!data.rows.length) return;
    get("/api/groups/lags", { id: data.rows.map((row) => row.id) }, page.signal).then((found) => {
      lags = found;
      if (!page.signal.aborted) draw();
    }).catch(() => {});
  });
}

function drawFilters(filters, data, state, change) {
  const choices = (counts) => [["", "all"], ...Object.entries(counts).sort().map(([name, number]) => [name, `${name || "unknown"} (${count(number)})`])];
  replace(filters,
    field("Kind", select(choices(data.types), state.type, { onchange: (event) => change({ type: event.target.value }), "data-focus": "type" })),
    field("State", select(choices(data.states), state.state, { onchange: (event) => change({ state: event.target.value }), "data-focus": "state" })));
}

function drawList(data, lags, state, change) {
  const errors = Object.entries(data.errors).map(([broker, error]) => h("p", { class: "box warning" }, `Groups of broker ${broker} are missing: ${error.message}`));
  if (!data.rows.length) return [errors, empty(data.of_all ? "No group is like that." : "There are no groups yet.")];
  const of = (row) => lags[row.id] ?? {};
  return [
    errors,
    h("p", { class: "quiet" }, shownOf(data.total, data.of_all, "group")),
    table("Groups", [
      { label: "Group", sort: "id", class: "name", cell: (row) => link(groupPath(row.id), row.id || "(empty name)") },
      { label: "Kind", sort: "type", cell: (row) => [row.type, row.is_simple && badge("offsets only")] },
      { label: "State", sort: "state", cell: (row) => stateBadge(row.state) },
      { label: "Partitions", number: true, cell: (row) => count(of(row).partitions) },
      { label: "Lag, records", number: true, cell: (row) => count(of(row).lag) },
      { label: "Lag, time", number: true, cell: (row) => duration(of(row).lag_s) },
    ], data.rows, { sort: state.sort, descending: state.descending, onsort: (sort, descending) => change({ sort, descending }) }),
    pager(data, (target) => change({ page: target })),
  ];
}
