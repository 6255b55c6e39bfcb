// A field for the name of a topic, which offers names as they are typed.

import { get } from "./api.js";
import { h, newId } from "./dom.js";
import { field } from "./widgets.js";

const PAUSE_MS = 150;

/** The input, and the field around it; properties.first: names that are offered before anything is typed. */
export function topicField(label, { first = [], hint, ...properties } = {}) {
  const names = h("datalist", { id: newId("topics") });
  const offer = (found) => names.replaceChildren(...found.map((name) => h("option", { value: name })));
  let timer = 0;
  const input = h("input", {
    type: "text", list: names.id, autocomplete: "off", spellcheck: "false", ...properties,
    oninput: () => {
      clearTimeout(timer);
      timer = setTimeout(async () => {
        const search = input.value.trim();
        if (!search) {
          offer(first);
          return;
        }
        try {
          const found = await get("/api/topics/suggest", { search });
          if (input.value.trim() === search) offer(found);
        } catch {
          // Names can be typed without help.
        }
      }, PAUSE_MS);
    },
  });
  offer(first);
  const made = field(label, input, hint);
  made.append(names);
  return { input, field: made };
}
