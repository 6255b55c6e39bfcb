// The list of topics, searched, sorted and paged on the server; creating topics.

import { get, post, session } from "../api.js";
import { go } from "../app.js";
import { actionForm, notify, openDialog } from "../dialogs.js";
import { h, replace } from "../dom.js";
import { bytes, count, plural, rate, shownOf } from "../format.js";
import { badge, button, empty, field, link, pager, searchBox, table, topicPath } from "../widgets.js";

export function show(main, page) {
  page.title("Topics");
  const state = {
    search: page.query.get("search") ?? "",
    sort: page.query.get("sort") ?? "name",
    descending: page.query.get("descending") === "true",
    internal: page.query.get("internal") === "true",
    page: Number(page.query.get("page") ?? 0),
  };
  const list = h("div", {});
  let details = {};
  let last = null;
  let refresh = () => {};
  const change = (values) => {
    Object.assign(state, { page: 0 }, values);
    page.setQuery({ ...state, sort: state.sort === "name" ? "" : state.sort, page: state.page || "" });
    refresh();
  };
  const internal = h("input", { type: "checkbox", checked: state.internal, onchange: (event) => change({ internal: event.target.checked }) });
  replace(main,
    h("div", { class: "title-line" }, h("h1", {}, "Topics"), session.may_change && button("Create topic", () => createTopic(), { class: "primary" })),
    h("div", { class: "toolbar" }, searchBox("Search topics", state.search, (search) => change({ search })), h("label", { class: "check" }, internal, "internal topics")),
    list);
  const draw = () => replace(list, drawList(last, details, state, change));
  refresh = page.live(list, 5000, (signal) => get("/api/topics", state, signal), (data) => {
    last = data;
    draw();
    if (!data.rows.length) return;
    get("/api/topics/details", { name: data.rows.map((row) => row.name) }, page.signal).then((found) => {
      details = found;
      if (!page.signal.aborted) draw();
    }).catch(() => {});
  });
}

function drawList(data, details, state, change) {
  if (!data.rows.length) return empty(state.search ? `No topic has “${state.search}” in its name.` : "There are no topics yet.");
  const of = (row) => details[row.name] ?? {};
  return [
    h("p", { class: "quiet" }, shownOf(data.total, data.of_all, "topic"), data.internal && !state.internal ? `, ${plural(data.internal, "internal one")} not shown` : ""),
    table("Topics", [
      { label: "Topic", sort: "name", class: "name", cell: (row) => [link(topicPath(row.name), row.name), row.internal && badge("internal")] },
      { label: "Partitions", sort: "partitions", number: true, cell: (row) => count(row.partitions) },
      { label: "Replicas", sort: "replicas", number: true, cell: (row) => count(row.replicas) },
      { label: "Not in sync", sort: "out_of_sync", number: true, cell: (row) => (row.offline ? badge(`${count(row.offline)} offline`, "bad") : row.out_of_sync ? badge(count(row.out_of_sync), "warning") : "0") },
      { label: "Records", number: true, cell: (row) => count(of(row).records) },
      { label: "Size", sort: "size", number: true, cell: (row) => bytes(of(row).size) },
      { label: "Rate", sort: "rate", number: true, cell: (row) => rate(of(row).rate) },
    ], data.rows, { sort: state.sort, descending: state.descending, onsort: (sort, descending) => change({ sort, descending }) }),
    pager(data, (target) => change({ page: target })),
  ];
}

function createTopic() {
  openDialog("Create topic", (close) => {
    const name = h("input", { type: "text", required: true, autofocus: true, spellcheck: "false", pattern: "[a-zA-Z0-9._\\-]+", maxlength: 249 });
    const partitions = h("input", { type: "number", min: 1, placeholder: "the cluster's default" });
    const replicas = h("input", { type: "number", min: 1, placeholder: "the cluster's default" });
    const configs = h("textarea", { rows: 4, spellcheck: "false", placeholder: "retention.ms=86400000\ncleanup.policy=compact" });
    const preview = h("div", { "aria-live": "polite" });
    const body = () => ({
      name: name.value.trim(),
      partitions: Number(partitions.value || -1),
      replicas: Number(replicas.value || -1),
      configs: readConfigs(configs.value),
    });
    return actionForm([
      field("Name", name, "letters, digits, dots, dashes and underscores"),
      h("div", { class: "fields" }, field("Partitions", partitions), field("Replication factor", replicas)),
      field("Configs", configs, "one a line, as name=value; what is left out is the cluster's default"),
      button("Check without creating", async () => {
        try {
          const found = await post("/api/topics/preview", body());
          replace(preview, h("p", { class: "box good" }, `The broker would create ${found.name} with ${count(found.partitions > 0 ? found.partitions : body().partitions)} partitions and ${count(found.replicas > 0 ? found.replicas : body().replicas)} replicas of each.`));
        } catch (error) {
          replace(preview, h("p", { class: "box bad" }, error.message));
        }
      }),
      preview,
    ], "Create", async () => {
      const found = await post("/api/topics/create", body());
      close();
      notify(`Topic ${found.name} is created.`);
      go(topicPath(found.name));
    }, { cancel: close });
  });
}

export function readConfigs(text) {
  const found = {};
  for (const line of text.split("\n").map((item) => item.trim()).filter(Boolean)) {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`A config is written as name=value, not ${line}.`);
    found[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return found;
}
