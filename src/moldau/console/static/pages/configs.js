// Configs of a topic, broker or group: values with where each comes from, changed after a preview.

import { get, post, session } from "../api.js";
import { actionForm, notify, openDialog } from "../dialogs.js";
import { h, replace } from "../dom.js";
import { badge, button, empty, field, searchBox, select, table } from "../widgets.js";

export function showConfigs(body, page, name, kind) {
  const state = { search: page.query.get("search") ?? "", own: page.query.get("own") === "true" };
  const list = h("div", {});
  let rows = [];
  const draw = () => {
    const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = rows.filter((row) => (!state.own || !row.is_default) && words.every((word) => row.name.includes(word) || String(row.value ?? "").toLowerCase().includes(word)));
    replace(list, shown.length ? configTable(shown, kind, name, refresh) : empty(rows.length ? "No config is like that." : "The broker tells none."));
  };
  const own = h("input", { type: "checkbox", checked: state.own, onchange: (event) => { state.own = event.target.checked; page.setQuery({ own: state.own }); draw(); } });
  replace(body, h("div", { class: "toolbar" }, searchBox("Search configs", state.search, (search) => { state.search = search; page.setQuery({ search }); draw(); }), h("label", { class: "check" }, own, "only what is not the default")), list);
  const refresh = page.live(list, 15000, (signal) => get("/api/configs", { kind, name }, signal), (data) => {
    rows = data;
    draw();
  });
}

function configTable(rows, kind, name, refresh) {
  return table("Configs", [
    { label: "Config", class: "name", cell: (row) => h("span", { title: row.about || undefined }, row.name) },
    { label: "Value", class: "value", cell: (row) => (row.sensitive ? h("span", { class: "quiet" }, "hidden") : row.value === null || row.value === "" ? h("span", { class: "quiet" }, row.value === null ? "null" : "empty") : h("code", {}, row.value)) },
    { label: "From", cell: (row) => (row.is_default ? h("span", { class: "quiet" }, row.source) : badge(row.source)) },
    { label: "Kind", cell: (row) => h("span", { class: "quiet" }, row.type) },
    { label: "", cell: (row) => (session.may_change && !row.read_only ? button("Edit", () => editConfig(row, kind, name, refresh), { class: "small", "aria-label": `Edit ${row.name}`, "data-focus": `edit-${row.name}` }) : row.read_only ? h("span", { class: "quiet" }, "read-only") : null) },
  ], rows);
}

function editConfig(row, kind, name, refresh) {
  openDialog(`${row.name} of ${kind} ${name}`, (close) => {
    const control = row.type === "boolean" ? select(["true", "false"], row.value ?? "false") : h("input", { type: row.sensitive ? "password" : "text", value: row.value ?? "", autofocus: true, spellcheck: "false", autocomplete: "off" });
    const place = h("div", { "aria-live": "polite" });
    const inherit = h("input", { type: "checkbox", onchange: () => { control.disabled = inherit.checked; forget(); } });
    let previewed = null;
    const forget = () => {
      previewed = null;
      replace(place);
      form.submitButton.textContent = "Preview";
    };
    control.addEventListener("input", forget);
    const changes = () => ({ [row.name]: inherit.checked ? null : control.value });
    const form = actionForm([
      row.about && h("p", { class: "quiet" }, row.about),
      row.synonyms.length > 0 && h("p", { class: "quiet" }, "It comes from: ", row.synonyms.map((each, index) => [index > 0 && ", then ", each.source, " ", h("code", {}, String(each.value ?? "null"))])),
      field("New value", control),
      !row.is_default && h("label", { class: "check" }, inherit, "take away the value set here, so that the next in the row counts"),
      place,
    ], "Preview", async () => {
      if (previewed === null) {
        previewed = await post("/api/configs/preview", { kind, name, changes: changes() });
        replace(place, previewTable(previewed));
        form.submitButton.textContent = "Change it";
        return;
      }
      await post("/api/configs/alter", { kind, name, changes: changes() });
      close();
      notify(`${row.name} is changed.`);
      refresh();
    }, { cancel: close });
    return form;
  }, { wide: true });
}

function previewTable(rows) {
  return h("div", { class: "box preview" }, h("p", {}, "The broker accepts this change. Nothing is written yet."),
    table("Change", [
      { label: "Config", cell: (row) => row.name },
      { label: "Now", cell: (row) => [h("code", {}, String(row.before ?? "null")), h("small", {}, ` ${row.source_before ?? ""}`)] },
      { label: "Then", cell: (row) => [h("code", {}, String(row.after ?? "null")), h("small", {}, ` ${row.source_after}`)] },
    ], rows));
}
