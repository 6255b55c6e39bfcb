// Schemas for Avro and protobuf: kept by this browser for each topic, and sent along with each question.

import { actionForm, openDialog } from "../dialogs.js";
import { h } from "../dom.js";
import { field } from "../widgets.js";

const keyOf = (topic, side) => `moldau-schema:${topic}:${side}`;

export function loadSchema(topic, side) {
  try {
    return JSON.parse(localStorage.getItem(keyOf(topic, side)) ?? "{}");
  } catch {
    return {};
  }
}

function keep(topic, side, schema) {
  try {
    localStorage.setItem(keyOf(topic, side), JSON.stringify(schema));
  } catch {
    throw new Error("The browser does not keep the schema: it is too large, or storage is forbidden.");
  }
}

export function editSchema(topic, side, format) {
  return new Promise((resolve) => {
    const known = loadSchema(topic, side);
    openDialog(`${format === "avro" ? "Avro schema" : "Protobuf message"} of the ${side}`, (close) => {
      if (format === "avro") {
        const text = h("textarea", { rows: 14, spellcheck: "false", autofocus: true, value: known.avro ?? "" });
        return actionForm([field("Schema", text, "the schema that values were written with, as JSON; Avro files with a schema of their own need none")], "Use it", async () => {
          if (text.value.trim()) JSON.parse(text.value);
          keep(topic, side, { ...known, avro: text.value });
          close();
        }, { cancel: close });
      }
      const file = h("input", { type: "file" });
      const message = h("input", { type: "text", value: known.message ?? "", spellcheck: "false", placeholder: "shop.Order" });
      return actionForm([
        field("Descriptor file", file, known.descriptors ? "one is kept; choose another to replace it" : "made by protoc --include_imports --descriptor_set_out=FILE"),
        field("Message", message, "its full name in the file"),
      ], "Use it", async () => {
        const descriptors = file.files[0] ? await toBase64(file.files[0]) : known.descriptors;
        keep(topic, side, { ...known, descriptors, message: message.value.trim() });
        close();
      }, { cancel: close });
    }, { wide: true, onclose: resolve });
  });
}

async function toBase64(file) {
  const data = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (const byte of data) text += String.fromCharCode(byte);
  return btoa(text);
}
