// Dialogs for changes: what is about to happen is shown first, and what is lost for good is confirmed by its name.

import { h, newId, replace } from "./dom.js";
import { button, field } from "./widgets.js";

/** Opens a dialog; body(close) makes its content. Escape and a click beside it close it. */
export function openDialog(title, body, options = {}) {
  const id = newId("dialog");
  const dialog = h("dialog", { "aria-labelledby": id, class: options.wide ? "wide" : "" });
  const close = () => {
    dialog.close();
  };
  dialog.append(
    h("div", { class: "dialog-head" }, h("h2", { id }, title), button("✕", close, { class: "plain", "aria-label": "Close" })),
    h("div", { class: "content" }, body(close)),
  );
  dialog.addEventListener("close", () => {
    dialog.remove();
    options.onclose?.();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) close();
  });
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector("[autofocus]")?.focus();
  return dialog;
}

/** A form whose submit carries out work; what it says against it is shown below. */
export function actionForm(content, submitText, work, options = {}) {
  const problem = h("p", { class: "problem", role: "alert" });
  const submit = h("button", { type: "submit", class: options.danger ? "danger" : "primary" }, submitText);
  const form = h("form", {
    class: "action",
    onsubmit: async (event) => {
      event.preventDefault();
      if (submit.disabled) return;
      submit.disabled = true;
      replace(problem);
      try {
        await work();
      } catch (error) {
        replace(problem, error.message);
      } finally {
        submit.disabled = options.isDisabled?.() ?? false;
      }
    },
  }, content, problem, h("div", { class: "buttons" }, options.cancel && button("Cancel", options.cancel), submit));
  form.submitButton = submit;
  submit.disabled = options.isDisabled?.() ?? false;
  return form;
}

/** Asks for a name to be typed before something is deleted for good. */
export function confirmByName(title, name, sentences, submitText, work) {
  openDialog(title, (close) => {
    const input = h("input", { type: "text", autocomplete: "off", spellcheck: "false", autofocus: true, oninput: () => { form.submitButton.disabled = input.value !== name; } });
    const form = actionForm(
      [sentences.map((text) => h("p", {}, text)), field("Type its name to confirm", input, name)],
      submitText,
      async () => {
        await work(input.value);
        close();
      },
      { danger: true, cancel: close, isDisabled: () => input.value !== name },
    );
    return form;
  });
}

/** A sentence in the corner of the page, for a while. */
export function notify(text, level = "good") {
  const notice = h("div", { class: `notice ${level}` }, text);
  document.getElementById("notices").append(notice);
  setTimeout(() => notice.remove(), 6000);
}
