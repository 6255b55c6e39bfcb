// Who may do what.

import { get, post, session } from "../api.js";
import { actionForm, notify, openDialog } from "../dialogs.js";
import { h, replace } from "../dom.js";
import { shownOf } from "../format.js";
import { topicField } from "../suggest.js";
import { badge, button, empty, field, pager, searchBox, select, table } from "../widgets.js";

export function show(main, page) {
  page.title("ACLs");
  const state = {
    search: page.query.get("search") ?? "",
    sort: page.query.get("sort") ?? "principal",
    descending: page.query.get("descending") === "true",
    page: Number(page.query.get("page") ?? 0),
  };
  const [list, actions] = [h("div", {}), h("div", { class: "buttons" })];
  let refresh = () => {};
  const change = (values) => {
    Object.assign(state, { page: 0 }, values);
    page.setQuery({ ...state, sort: state.sort === "principal" ? "" : state.sort, page: state.page || "" });
    refresh();
  };
  replace(main, h("div", { class: "title-line" }, h("h1", {}, "ACLs"), actions), h("div", { class: "toolbar" }, searchBox("Search ACLs", state.search, (search) => change({ search }))), list);
  refresh = page.live(list, 5000, (signal) => get("/api/acls", state, signal), (data) => {
    if (session.may_change) replace(actions, button("Add an entry", () => create(data, refresh), { class: "primary" }));
    replace(list, data.rows.length ? [
      h("p", { class: "quiet" }, shownOf(data.total, data.of_all, "entry", "entries")),
      table("ACLs", [
        { label: "Who", sort: "principal", class: "name", cell: (row) => row.principal },
        { label: "From", cell: (row) => (row.host === "*" ? "anywhere" : row.host) },
        { label: "May", cell: (row) => [badge(row.permission === "DENY" ? "may not" : "may", row.permission === "DENY" ? "bad" : "good"), " ", words(row.operation)] },
        { label: "On", sort: "resource", cell: (row) => `${words(row.resource_type)} ${row.resource_name}${row.pattern_type === "PREFIXED" ? "…" : ""}` },
        { label: "", cell: (row) => session.may_change && button("Delete", () => remove(row, refresh), { class: "small", "aria-label": `Delete ${row.principal} ${words(row.operation)} ${words(row.resource_type)} ${row.resource_name}` }) },
      ], data.rows, { sort: state.sort, descending: state.descending, onsort: (sort, descending) => change({ sort, descending }) }),
      pager(data, (target) => change({ page: target })),
    ] : empty(data.of_all ? "No entry is like that." : "There are no entries."));
  });
}

function words(name) {
  return name.toLowerCase().replaceAll("_", " ");
}

function create(data, refresh) {
  openDialog("Add an entry", (close) => {
    const name = topicField("Name", { required: true, hint: "* for all; kafka-cluster for the cluster" });
    const inputs = {
      principal: h("input", { type: "text", value: "User:", autofocus: true, spellcheck: "false", required: true }),
      permission: select(data.permissions, "ALLOW"),
      operation: select(data.operations, "READ"),
      resource_type: select(data.resource_types, "TOPIC"),
      resource_name: name.input,
      pattern_type: select(data.pattern_types, "LITERAL"),
      host: h("input", { type: "text", value: "*", spellcheck: "false" }),
    };
    return actionForm([
      h("div", { class: "fields" }, field("Who", inputs.principal, "User:name, or User:* for everybody"), field("From", inputs.host, "an address, * for all")),
      h("div", { class: "fields" }, field("Permission", inputs.permission), field("Operation", inputs.operation)),
      h("div", { class: "fields" }, field("Resource", inputs.resource_type), name.field, field("Pattern", inputs.pattern_type)),
    ], "Add", async () => {
      await post("/api/acls/create", Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value])));
      close();
      notify("The entry is added.");
      refresh();
    }, { cancel: close });
  }, { wide: true });
}

function remove(row, refresh) {
  openDialog("Delete an entry", (close) => actionForm(
    h("p", {}, `${row.principal} ${row.permission === "DENY" ? "may not" : "may"} ${words(row.operation)} ${words(row.resource_type)} ${row.resource_name}: this entry goes.`),
    "Delete it",
    async () => {
      await post("/api/acls/delete", row);
      close();
      notify("The entry is deleted.");
      refresh();
    },
    { danger: true, cancel: close }));
}
