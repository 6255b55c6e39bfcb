// Users of SCRAM: new ones, other passwords, deleting them.

import { get, post, session } from "../api.js";
import { actionForm, confirmByName, notify, openDialog } from "../dialogs.js";
import { h, replace } from "../dom.js";
import { count } from "../format.js";
import { button, empty, field, select, table } from "../widgets.js";

export function show(main, page) {
  page.title("Users");
  const [list, actions] = [h("div", {}), h("div", { class: "buttons" })];
  let refresh = () => {};
  replace(main, h("div", { class: "title-line" }, h("h1", {}, "Users"), actions), h("p", { class: "quiet" }, "Users of SCRAM, whose credentials the cluster keeps."), list);
  refresh = page.live(list, 5000, (signal) => get("/api/users", {}, signal), (data) => {
    if (session.may_change) replace(actions, button("Add a user", () => setPassword(null, data, refresh), { class: "primary" }));
    replace(list, data.rows.length ? table("Users", [
      { label: "User", class: "name", cell: (row) => row.user },
      { label: "Credentials", cell: (row) => h("ul", { class: "plain-list" }, row.credentials.map((each) => h("li", {}, `${each.mechanism}, ${count(each.iterations)} iterations `, session.may_change && button("Delete", () => remove(row.user, each.mechanism, refresh), { class: "small", "aria-label": `Delete ${each.mechanism} of ${row.user}` })))) },
      { label: "", cell: (row) => session.may_change && button("New password", () => setPassword(row.user, data, refresh), { class: "small", "aria-label": `New password of ${row.user}` }) },
    ], data.rows) : empty("The cluster keeps no users of SCRAM."));
  });
}

function setPassword(user, data, refresh) {
  openDialog(user ? `New password of ${user}` : "Add a user", (close) => {
    const name = h("input", { type: "text", value: user ?? "", required: true, disabled: Boolean(user), autofocus: !user, autocomplete: "off", spellcheck: "false" });
    const password = h("input", { type: "password", required: true, autocomplete: "new-password", autofocus: Boolean(user) });
    const mechanism = select(data.mechanisms, data.mechanisms.at(-1));
    return actionForm([field("User", name), field("Password", password), field("Mechanism", mechanism)], "Set", async () => {
      await post("/api/users/set", { user: name.value, password: password.value, mechanism: mechanism.value });
      close();
      notify(`${name.value} can log in with that password.`);
      refresh();
    }, { cancel: close });
  });
}

function remove(user, mechanism, refresh) {
  confirmByName(`Delete ${mechanism} of ${user}`, user, [`${user} can no longer log in by ${mechanism}. Connections that are open stay until they log in again.`], "Delete", async (confirmed) => {
    await post("/api/users/delete", { user, mechanism, confirmed });
    notify(`${mechanism} of ${user} is deleted.`);
    refresh();
  });
}
