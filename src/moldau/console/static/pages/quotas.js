// Quotas of users, client ids and addresses.

import { get, post, session } from "../api.js";
import { actionForm, notify, openDialog } from "../dialogs.js";
import { h, replace } from "../dom.js";
import { count } from "../format.js";
import { button, empty, field, select, table } from "../widgets.js";

// Brokers count connections by address, and everything else by user and client id.
const OF_ADDRESSES = "connection_creation_rate";
const KINDS = [["user", "a user"], ["client-id", "a client id"], ["user client-id", "a user's client id"], ["ip", "an address"]];

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
      { label: "", cell: (row) => session.may_change && h("div", { class: "buttons" },
        button("Edit", () => edit(row, data.keys, refresh), { class: "small", "aria-label": `Edit quotas for ${words(row.entity)}` }),
        button("Remove", () => remove(row, refresh), { class: "small", "aria-label": `Remove quotas for ${words(row.entity)}` })) },
    ], data.rows) : empty("No quotas are set: clients may use as much as brokers can give."));
  });
}

function words(entity) {
  return Object.entries(entity).map(([kind, name]) => `${kind} ${name === null ? "(all others)" : name}`).join(", ");
}

function remove(row, refresh) {
  openDialog(`Remove quotas for ${words(row.entity)}`, (close) => actionForm(
    h("p", {}, `${Object.keys(row.quotas).join(", ")}: from then on what is set for all others counts, if anything is.`),
    "Remove them",
    async () => {
      await post("/api/quotas/alter", { entity: row.entity, quotas: Object.fromEntries(Object.keys(row.quotas).map((name) => [name, null])) });
      close();
      notify("The quotas are removed.");
      refresh();
    },
    { danger: true, cancel: close }));
}

function edit(row, keys, refresh) {
  openDialog(row ? `Quotas for ${words(row.entity)}` : "Set a quota", (close) => {
    const kind = select(KINDS, row ? Object.keys(row.entity).sort().reverse().join(" ") : "user", { onchange: () => draw() });
    const names = Object.fromEntries(["user", "client-id", "ip"].map((each) => [each, h("input", { type: "text", autocomplete: "off", spellcheck: "false", autofocus: each === "user" && !row })]));
    const nameFields = Object.entries(names).map(([each, input]) => [each, field({ user: "User", "client-id": "Client id", ip: "Address" }[each], input, "empty: all that have none of their own")]);
    const inputs = Object.fromEntries(Object.keys(keys).map((key) => [key, h("input", { type: "number", min: 0, step: "any", value: row?.quotas[key] ?? "", placeholder: "none" })]));
    const numberFields = Object.entries(inputs).map(([key, input]) => [key, field(key, input, keys[key])]);
    const draw = () => {
      const chosen = kind.value.split(" ");
      for (const [each, place] of nameFields) place.hidden = !chosen.includes(each);
      for (const [key, place] of numberFields) place.hidden = (key === OF_ADDRESSES) !== (kind.value === "ip") && row?.quotas[key] === undefined;
    };
    draw();
    return actionForm([
      !row && h("div", { class: "fields" }, field("For", kind), nameFields.map(([, place]) => place)),
      numberFields.map(([, place]) => place),
    ], "Set", async () => {
      const quotas = {};
      for (const [key, input] of Object.entries(inputs)) {
        if (numberFields.find(([each]) => each === key)[1].hidden) continue;
        const before = row?.quotas[key];
        if (input.value === "" && before !== undefined) quotas[key] = null;
        else if (input.value !== "" && Number(input.value) !== before) quotas[key] = Number(input.value);
      }
      await post("/api/quotas/alter", { entity: row ? row.entity : Object.fromEntries(kind.value.split(" ").map((each) => [each, names[each].value.trim() || null])), quotas });
      close();
      notify("The quotas are set.");
      refresh();
    }, { cancel: close });
  }, { wide: true });
}
