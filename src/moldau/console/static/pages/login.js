// Logging in with a user of the broker's.

import { LOGIN, post } from "../api.js";
import { actionForm } from "../dialogs.js";
import { h, replace } from "../dom.js";
import { field, select } from "../widgets.js";

export function show(main, page, enter) {
  page.title("Log in");
  const user = h("input", { type: "text", autocomplete: "username", required: true, autofocus: true, spellcheck: "false" });
  const password = h("input", { type: "password", autocomplete: "current-password", required: true });
  const mechanism = select([["", "as the broker offers"], "SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"], "");
  replace(main, h("div", { class: "login" },
    h("h1", {}, "Log in"),
    h("p", { class: "quiet" }, "With a user of the broker's. What you may do here is what the broker lets that user do."),
    actionForm([field("User", user), field("Password", password), h("details", {}, h("summary", {}, "How to log in"), field("Mechanism", mechanism))], "Log in", async () => {
      await post(LOGIN, { user: user.value, password: password.value, mechanism: mechanism.value });
      await enter();
    })));
  user.focus();
}
