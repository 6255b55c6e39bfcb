// Transactions: who has one open, since when, where; ending one for good; finding those that nobody will end.

import { get, post, session } from "../api.js";
import { confirmByName, notify } from "../dialogs.js";
import { h, replace } from "../dom.js";
import { count, duration, plural, time } from "../format.js";
import { topicField } from "../suggest.js";
import { badge, button, card, crumbs, empty, errorBox, facts, field, link, pager, searchBox, select, table, topicPath } from "../widgets.js";

const OLDER_MINUTES = 15;
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
  const state = {
    search: page.query.get("search") ?? "",
    state: page.query.get("state") ?? "",
    sort: page.query.get("sort") ?? "id",
    descending: page.query.get("descending") === "true",
    page: Number(page.query.get("page") ?? 0),
  };
  const list = h("div", {});
  let refresh = () => {};
  const change = (values) => {
    Object.assign(state, { page: 0 }, values);
    page.setQuery({ ...state, sort: state.sort === "id" ? "" : state.sort, page: state.page || "" });
    refresh();
  };
  replace(main, h("h1", {}, "Transactions"),
    h("div", { class: "toolbar" }, searchBox("Search transactional ids", state.search, (search) => change({ search })), field("State", select(STATES.map((name) => [name, name || "all"]), state.state, { onchange: (event) => change({ state: event.target.value }) }))), list, hanging(page));
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
      ] : empty(state.search || state.state ? "No transaction is like that." : "There are no transactions yet."));
  });
}

/** Looked for when somebody wants it: every partition is asked for its producers. */
function hanging(page) {
  const topic = topicField("Topic", { value: page.query.get("hanging") ?? "", placeholder: "all topics", "data-focus": "hanging-topic" });
  const minutes = h("input", { type: "number", min: 0, step: "any", required: true, value: page.query.get("minutes") ?? OLDER_MINUTES });
  const found = h("div", { "aria-live": "polite" });
  const submit = h("button", { type: "submit" }, "Look for them");
  const look = async () => {
    submit.disabled = true;
    replace(found, h("p", { class: "quiet" }, "Asking the leaders of all partitions…"));
    try {
      const data = await get("/api/transactions/hanging", { topic: topic.input.value.trim(), older_ms: Math.round(Number(minutes.value) * 60000) }, page.signal);
      replace(found, hangingTable(data, look));
    } catch (error) {
      if (error.name !== "AbortError") replace(found, errorBox(error));
    } finally {
      submit.disabled = false;
    }
  };
  const form = h("form", {
    class: "toolbar",
    onsubmit: (event) => {
      event.preventDefault();
      page.setQuery({ hanging: topic.input.value.trim() || "*", minutes: Number(minutes.value) === OLDER_MINUTES ? "" : minutes.value });
      look();
    },
  }, topic.field, field("Silent for, minutes", minutes), submit);
  if (topic.input.value === "*") topic.input.value = "";
  if (page.query.has("hanging")) look();
  return card("Hanging transactions",
    h("p", { class: "quiet" }, "Open in a partition although no coordinator knows of them, so that nobody will end them: readers of committed records stop there, and compaction too."),
    form, found);
}

function hangingTable(data, refresh) {
  const rest = data.asked < data.of_partitions && h("p", { class: "quiet" }, `The first ${count(data.asked)} of ${count(data.of_partitions)} partitions were asked: name a topic for the others.`);
  if (!data.rows.length) return [empty(`No transaction hangs in ${plural(data.asked, "partition")}.`), rest];
  return [table("Hanging transactions", [
    { label: "Partition", class: "name", cell: (row) => link(`${topicPath(row.topic, "producers")}?partition=${row.partition}`, `${row.topic}-${row.partition}`) },
    { label: "Open since offset", number: true, cell: (row) => link(`${topicPath(row.topic, "messages")}?partitions=${row.partition}&from=offset&at=${row.open_since_offset}`, count(row.open_since_offset)) },
    { label: "Last written", cell: (row) => `${time(row.last_ms)}, ${duration((Date.now() - row.last_ms) / 1000)} ago` },
    { label: "Producer id", number: true, cell: (row) => String(row.producer_id) },
    { label: "Epoch", number: true, cell: (row) => count(row.epoch) },
    { label: "", cell: (row) => session.may_change && button("Abort", () => abort(row, refresh), { class: "small danger", "aria-label": `Abort the transaction at offset ${row.open_since_offset} of ${row.topic}-${row.partition}` }) },
  ], data.rows), rest];
}

function abort(row, refresh) {
  const name = `${row.topic}-${row.partition}`;
  confirmByName(`Abort at offset ${count(row.open_since_offset)} of ${name}`, name, [
    "An abort marker is written into the partition. What the transaction has written there is never shown to readers of committed records, which go on behind it.",
    "If the coordinator knows the transaction by then, nothing is done.",
  ], "Abort it", async (confirmed) => {
    await post("/api/transactions/abort", { topic: row.topic, partition: row.partition, open_since_offset: row.open_since_offset, confirmed });
    notify(`The transaction in ${name} is aborted.`);
    refresh();
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
