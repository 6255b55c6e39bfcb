// Quotas of users, client ids and addresses.

import { get, post, session } from "../api.js";
import { actionForm, notify, openDialog } from "../dialogs.js";
import { h, replace } from "../dom.js";
import { count } from "../format.js";
import { button, empty, field, select, table } from "../widgets.js";

export function show(main, page) {
  page.title("Quotas");
  const list = h("div", {});
  let refresh = () => {};
  const actions = h("div", { class: "buttons" });
  replace(main, h("div", { class: "title-line" }, h("h1", {}, "Quotas"), actions), list);
  refresh = page.live(list, 5000, (signal) => get("/api/quotas", {}, signal), (data) => {
    if (session.may_change) replace(actions, button("Set a quota", () => edit(null, data.keys, refresh), { class: "primary" }));
    replace(list, data.rows.length ? table("Quotas", [
      { label: "For", class: "name", cell: (row) => words(row.entity) },
      { label: "Quotas", cell: (row) => h("ul", { class: "plain-list" }, Object.entries(row.quotas).map(([name, value]) => h("li", {}, `${name} `, h("strong", {}, count(value))))) },
      { label: "", cell: (row) => session.may_change && button("Edit", () => edit(row, data.keys, refresh), { class: "small", "aria-label": `Edit quotas for ${words(row.entity)}` }) },
    ], data.rows) : empty("No quotas are set: clients may use as much as brokers can give."));
  });
}

function words(entity) {
  return Object.entries(entity).map(([kind, name]) => `${kind} ${name === null ? "(all others)" : name}`).join(", ");
}

function edit(row, keys, refresh) {
  openDialog(row ? `Quotas for ${words(row.entity)}` : "Set a quota", (close) => {
    const kind = select([["user", "a user"], ["client-id", "a client id"], ["ip", "an address"]], "user");
    const name = h("input", { type: "text", autocomplete: "off", spellcheck: "false", autofocus: true });
    const inputs = Object.fromEntries(Object.keys(keys).map((key) => [key, h("input", { type: "number", min: 0, step: "any", value: row?.quotas[key] ?? "", placeholder: "none" })]));
    return actionForm([
      !row && h("div", { class: "fields" }, field("For", kind), field("Name", name, "empty: all that have none of their own")),
      Object.entries(inputs).map(([key, input]) => field(key, input, keys[key])),
    ], "Set", async () => {
      const quotas = {};
      for (const [key, input] of Object.entries(inputs)) {
        const before = row?.quotas[key];
        if (input.value === "" && before !== undefined) quotas[key] = null;
        else if (input.value !== "" && Number(input.value) !== before) quotas[key] = Number(input.value);
      }
      await post("/api/quotas/alter", { entity: row ? row.entity : { [kind.value]: name.value === "" ? null : name.value }, quotas });
      close();
      notify("The quotas are set.");
      refresh();
    }, { cancel: close });
  }, { wide: true });
}
