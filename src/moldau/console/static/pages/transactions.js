// Transactions: who has one open, since when, where; ending one for good.

import { get, post, session } from "../api.js";
import { confirmByName, notify } from "../dialogs.js";
import { h, replace } from "../dom.js";
import { count, duration, time } from "../format.js";
import { badge, button, card, crumbs, empty, facts, field, link, pager, searchBox, select, table, topicPath } from "../widgets.js";

const STATES = ["", "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead"];

export function show(main, page) {
  if (page.parameters[0]) showOne(main, page, page.parameters[0]);
  else showList(main, page);
}

function stateOf(state) {
  return badge(state, { Ongoing: "warning", CompleteCommit: "good", Dead: "bad" }[state] ?? "");
}

function showList(main, page) {
  page.title("Transactions");
  const state = { search: page.query.get("search") ?? "", state: page.query.get("state") ?? "", sort: "id", descending: false, page: 0 };
  const list = h("div", {});
  let refresh = () => {};
  const change = (values) => {
    Object.assign(state, { page: 0 }, values);
    page.setQuery({ search: state.search, state: state.state });
    refresh();
  };
  replace(main, h("h1", {}, "Transactions"),
    h("div", { class: "toolbar" }, searchBox("Search transactional ids", state.search, (search) => change({ search })), field("State", select(STATES.map((name) => [name, name || "all"]), state.state, { onchange: (event) => change({ state: event.target.value }) }))), list);
  refresh = page.live(list, 3000, (signal) => get("/api/transactions", state, signal), (data) => {
    replace(list,
      Object.entries(data.errors).map(([broker, error]) => h("p", { class: "box warning" }, `Transactions of broker ${broker} are missing: ${error.message}`)),
      data.rows.length ? [
        table("Transactions", [
          { label: "Transactional id", sort: "id", class: "name", cell: (row) => link(`/transactions/${encodeURIComponent(row.id)}`, row.id) },
          { label: "State", sort: "state", cell: (row) => stateOf(row.state) },
          { label: "Producer id", sort: "producer_id", number: true, cell: (row) => String(row.producer_id) },
          { label: "Coordinator", number: true, cell: (row) => link(`/brokers/${row.coordinator}`, String(row.coordinator)) },
        ], data.rows, { sort: state.sort, descending: state.descending, onsort: (sort, descending) => change({ sort, descending }) }),
        pager(data, (target) => change({ page: target })),
      ] : empty("There are no transactions like that."));
  });
}

function showOne(main, page, id) {
  page.title(id);
  const [body, actions] = [h("div", {}), h("div", { class: "buttons" })];
  replace(main, crumbs(link("/transactions", "Transactions"), h("span", {}, id)), h("div", { class: "title-line" }, h("h1", { class: "name" }, id), actions), body);
  const refresh = page.live(body, 2000, (signal) => get("/api/transaction", { id }, signal), (found) => {
    replace(body, card(null, facts([
      ["State", stateOf(found.state)],
      ["Began", found.began_ms ? `${time(found.began_ms)}, ${duration((Date.now() - found.began_ms) / 1000)} ago` : "–"],
      ["Timeout", duration(found.timeout_ms / 1000)],
      ["Producer id", String(found.producer_id)],
      ["Producer epoch", count(found.producer_epoch)],
      ["Coordinator", link(`/brokers/${found.coordinator}`, `broker ${found.coordinator}`)],
    ])), card("Partitions", found.partitions.length ? table("Partitions", [{ label: "Topic", class: "name", cell: (row) => link(topicPath(row.topic), row.topic) }, { label: "Partition", number: true, cell: (row) => String(row.partition) }], found.partitions) : empty("No partition is part of it now.")));
  });
  if (session.may_change) replace(actions, button("Terminate", () => confirmByName(`Terminate ${id}`, id, ["What it has open is aborted, and its producer is fenced: it has to begin anew."], "Terminate", async (confirmed) => {
    await post("/api/transactions/terminate", { id, confirmed });
    notify(`What ${id} had open is aborted.`);
    refresh();
  }), { class: "danger" }));
}
