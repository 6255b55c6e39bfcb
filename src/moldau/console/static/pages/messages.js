// Records of a topic: browsed, searched, followed live, looked at whole, copied, downloaded and sent.

import { download, get, post, session, stream } from "../api.js";
import { actionForm, notify, openDialog } from "../dialogs.js";
import { h, newId, replace } from "../dom.js";
import { bytes, count, duration, plural, readPartitions, readTime, time } from "../format.js";
import { badge, button, copyButton, empty, errorBox, field, select } from "../widgets.js";
import { editSchema, loadSchema } from "./schemas.js";

const SHOWN_LIVE_MAX = 500;
const FORMATS = [["auto", "guess"], ["json", "JSON"], ["text", "text"], ["hex", "hexadecimal"], ["base64", "base64"], ["int32", "int32"], ["int64", "int64"], ["float64", "double"], ["avro", "Avro"], ["protobuf", "protobuf"], ["kafka", "Kafka's own"]];
const FROM = [["newest", "newest first"], ["oldest", "from the beginning"], ["offset", "from an offset"], ["time", "from a time"]];

export function showMessages(body, page, topic) {
  new Messages(body, page, topic).start();
}

class Messages {
  constructor(body, page, topic) {
    this.body = body;
    this.page = page;
    this.topic = topic;
    this.running = null;
    this.rows = h("div", { class: "records" });
    this.status = h("p", { class: "quiet status", role: "status" });
    this.more = h("div", { class: "buttons" });
    this.shown = 0;
    this.controls = this.makeControls();
  }

  makeControls() {
    const query = this.page.query;
    const text = (name, properties = {}) => h("input", { type: "text", value: query.get(name) ?? "", autocomplete: "off", spellcheck: "false", ...properties });
    return {
      from: select(FROM, query.get("from") ?? "newest", { onchange: () => this.drawPlace() }),
      place: text("at"),
      partitions: text("partitions", { placeholder: "all", size: 8 }),
      limit: select(["20", "50", "100", "500"], query.get("limit") ?? "50"),
      key: select(FORMATS, query.get("key") ?? "auto", { onchange: () => this.askSchema("key") }),
      value: select(FORMATS, query.get("value") ?? "auto", { onchange: () => this.askSchema("value") }),
      isolation: select([["read_uncommitted", "all records"], ["read_committed", "committed only"]], query.get("isolation") ?? "read_uncommitted"),
      text: text("text", { placeholder: "text to find  ( / )", "data-search": "true", type: "search" }),
      where: select([["anywhere", "anywhere"], ["key", "in the key"], ["value", "in the value"], ["headers", "in headers"]], query.get("where") ?? "anywhere"),
      key_is: text("key_is", { placeholder: "exactly this key", oninput: () => this.hintAtPartition() }),
      field: text("field", { placeholder: "customer.id=42" }),
    };
  }

  start() {
    const controls = this.controls;
    this.placeField = field("Place", controls.place);
    this.liveButton = button("Live", () => (this.running === "live" ? this.stop() : this.follow()), { "data-live": "true", "aria-pressed": "false" });
    this.stopButton = button("Stop", () => this.stop(), { hidden: true });
    this.keyHint = h("p", { class: "quiet whole-line", "aria-live": "polite" });
    const submit = (event) => {
      event.preventDefault();
      if (controls.text.value || controls.key_is.value || controls.field.value) this.search();
      else this.browse();
    };
    replace(this.body,
      h("form", { class: "toolbar messages-bar", onsubmit: submit },
        field("Show", controls.from), this.placeField, field("Partitions", controls.partitions), field("Records", controls.limit),
        field("Key as", controls.key), field("Value as", controls.value), field("Isolation", controls.isolation),
        field("Find", controls.text), field("Where", controls.where), field("Key is", controls.key_is), field("JSON field", controls.field),
        h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Show"), this.liveButton, this.stopButton,
          button("Download", () => this.download()),
          session.may_change && button("Produce", () => produce(this.topic, () => this.running || this.browse()))),
        this.keyHint),
      this.status, this.rows, this.more);
    this.drawPlace();
    this.hintAtPartition();
    offerFormats([controls.key, controls.value]);
    this.page.signal.addEventListener("abort", () => this.stop());
    if (this.page.query.get("live") === "true") this.follow();
    else if (controls.text.value || controls.key_is.value || controls.field.value) this.search();
    else this.browse();
  }

  drawPlace() {
    const from = this.controls.from.value;
    this.placeField.hidden = from !== "offset" && from !== "time";
    this.controls.place.placeholder = from === "time" ? "2026-01-31 12:00 or -15m" : "offset";
    this.placeField.querySelector("label").textContent = from === "time" ? "Time" : "Offset";
  }

  /** A search for one key need not read the other partitions, if its producers use Kafka's partitioner. */
  hintAtPartition() {
    tellPartition(this.topic, () => (this.controls.key_is.value ? { format: "text", text: this.controls.key_is.value } : null), (partition) => {
      if (partition === null) {
        replace(this.keyHint);
        return;
      }
      const isChosen = this.controls.partitions.value.trim() === String(partition);
      replace(this.keyHint, `Kafka's default partitioner puts this key in partition ${partition}. `, !isChosen && button("Look only there", () => {
        this.controls.partitions.value = String(partition);
        this.hintAtPartition();
      }, { class: "small" }));
    });
  }

  async askSchema(side) {
    const format = this.controls[side].value;
    if (format === "avro" || format === "protobuf") await editSchema(this.topic, side, format);
  }

  /** The question, as the API wants it; raises where something makes no sense. */
  question() {
    const controls = this.controls;
    const partitions = readPartitions(controls.partitions.value);
    if (partitions === null) throw new Error("Partitions are written as 0,2 or 0-3.");
    const body = {
      topic: this.topic, from: controls.from.value, partitions, limit: Number(controls.limit.value), isolation: controls.isolation.value,
      key: { format: controls.key.value, ...loadSchema(this.topic, "key") }, value: { format: controls.value.value, ...loadSchema(this.topic, "value") },
    };
    if (body.from === "offset") {
      if (!/^\d+$/.test(controls.place.value.trim())) throw new Error("An offset is a whole number.");
      body.offset = Number(controls.place.value);
    }
    if (body.from === "time") {
      body.time = readTime(controls.place.value);
      if (body.time === null) throw new Error("A time is written as 2026-01-31 12:00, or -15m for a quarter of an hour ago.");
      body.time = Math.max(0, Math.round(body.time));
    }
    return body;
  }

  findings() {
    const controls = this.controls;
    return { text: controls.text.value, place: controls.where.value, key_is: controls.key_is.value, field: controls.field.value };
  }

  remember(live = false) {
    const controls = this.controls;
    const unless = (value, usual) => (value === usual ? "" : value);
    this.page.setQuery({
      from: unless(controls.from.value, "newest"), at: this.placeField.hidden ? "" : controls.place.value, partitions: controls.partitions.value,
      limit: unless(controls.limit.value, "50"), key: unless(controls.key.value, "auto"), value: unless(controls.value.value, "auto"),
      isolation: unless(controls.isolation.value, "read_uncommitted"), text: controls.text.value, where: unless(controls.where.value, "anywhere"),
      key_is: controls.key_is.value, field: controls.field.value, live,
    });
  }

  begin(kind) {
    this.stop();
    this.running = kind;
    this.abort = new AbortController();
    this.shown = 0;
    replace(this.rows);
    replace(this.more);
    this.liveButton.setAttribute("aria-pressed", String(kind === "live"));
    this.stopButton.hidden = kind === "browse";
    this.remember(kind === "live");
    return this.abort.signal;
  }

  stop() {
    this.abort?.abort();
    this.running = null;
    this.liveButton?.setAttribute("aria-pressed", "false");
    if (this.stopButton) this.stopButton.hidden = true;
  }

  say(...parts) {
    replace(this.status, parts);
  }

  fail(error) {
    if (error.name === "AbortError") return;
    this.stop();
    replace(this.status);
    replace(this.rows, errorBox(error));
    if (error.away) setTimeout(() => !this.page.signal.aborted && !this.running && this.browse(), 3000);
  }

  async browse() {
    let body;
    try {
      body = this.question();
    } catch (error) {
      this.fail(error);
      return;
    }
    const signal = this.begin("browse");
    this.say("Reading…");
    try {
      const found = await post("/api/messages/browse", body, signal);
      if (signal.aborted) return;
      this.running = null;
      this.add(found.records);
      this.tellBounds(found);
      this.offerMore(body, found);
    } catch (error) {
      this.fail(error);
    }
  }

  tellBounds(found) {
    const all = Object.values(found.bounds).reduce((sum, [start, end]) => sum + end - start, 0);
    if (!this.shown) replace(this.rows, empty(all ? "There are no records from there on." : "There are no records."));
    this.say(`${count(this.shown)} shown of about ${count(all)} in ${plural(Object.keys(found.bounds).length, "partition")}.`);
  }

  offerMore(body, found) {
    replace(this.more, found.more && button(body.from === "newest" ? "Older" : "Next", async () => {
      try {
        const next = await post("/api/messages/browse", { ...body, cursor: found.cursor }, this.page.signal);
        this.add(next.records);
        this.tellBounds(next);
        this.offerMore(body, next);
      } catch (error) {
        this.fail(error);
      }
    }));
  }

  async search() {
    let body;
    try {
      body = this.question();
    } catch (error) {
      this.fail(error);
      return;
    }
    if (body.from === "newest") body.from = "oldest";
    const signal = this.begin("search");
    delete body.limit;
    const bar = h("progress", { max: 1, value: 0, "aria-label": "Searched" });
    const words = h("span", {});
    this.say(bar, " ", words);
    let found = 0;
    try {
      for await (const event of stream("/api/messages/search", { ...body, ...this.findings() }, signal)) {
        if (event.records?.length) this.add(event.records);
        found = event.found ?? found;
        bar.value = event.of_offsets ? event.offsets / event.of_offsets : 1;
        const speed = event.seconds > 0 ? `, ${bytes(event.bytes / event.seconds)}/s` : "";
        words.textContent = `${count(found)} found in ${count(event.scanned)} records (${bytes(event.bytes)}${speed}). ${event.stopped ?? (event.done ? "That is all." : "")}`;
      }
      if (!found) replace(this.rows, empty("Nothing was found."));
    } catch (error) {
      this.fail(error);
      return;
    }
    this.stop();
  }

  async follow() {
    let body;
    try {
      body = this.question();
    } catch (error) {
      this.fail(error);
      return;
    }
    const signal = this.begin("live");
    delete body.limit;
    let [seen, leftOut] = [0, 0];
    const began = Date.now();
    const tell = () => this.say(badge("live", "good"), ` ${count(seen)} records in ${duration((Date.now() - began) / 1000)}`, leftOut ? `; ${count(leftOut)} more came faster than they can be read and are not shown.` : ".");
    try {
      for await (const event of stream("/api/messages/tail", { ...body, ...this.findings() }, signal)) {
        seen += event.records?.length ?? 0;
        leftOut += event.left_out ?? 0;
        if (event.records?.length) this.add(event.records, true);
        tell();
      }
    } catch (error) {
      this.fail(error);
    }
  }

  add(records, onTop = false) {
    if (!this.table || !this.rows.contains(this.table)) {
      this.table = h("tbody", {});
      replace(this.rows, h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Records" }, h("table", { class: "record-table" },
        h("caption", { class: "hidden" }, "Records"),
        h("thead", {}, h("tr", {}, ["", "Partition", "Offset", "Time", "Key", "Value"].map((name, index) => h("th", { scope: "col", class: index === 1 || index === 2 ? "number" : "" }, name || h("span", { class: "hidden" }, "Whole"))))),
        this.table)));
    }
    const lines = records.map((record) => this.line(record));
    if (onTop) this.table.prepend(...lines.reverse().flat());
    else this.table.append(...lines.flat());
    this.shown += records.length;
    while (onTop && this.table.children.length > SHOWN_LIVE_MAX * 2) this.table.lastChild.remove();
  }

  line(record) {
    const id = newId("record");
    const details = h("tr", { id, hidden: true, class: "details" }, h("td", { colspan: 6 }));
    const opener = h("button", {
      type: "button", class: "plain opener", "aria-expanded": "false", "aria-controls": id, "aria-label": `Record ${record.partition}:${record.offset}`,
      onclick: () => {
        const opened = details.hidden;
        details.hidden = !opened;
        opener.setAttribute("aria-expanded", String(opened));
        opener.textContent = opened ? "▾" : "▸";
        if (opened && !details.filled) {
          details.filled = true;
          replace(details.firstChild, this.whole(record));
        }
      },
    }, "▸");
    const side = (part) => (part.format === "null" ? h("span", { class: "quiet" }, "null") : h("span", { class: "one-line" }, part.text.slice(0, 300).replace(/\s+/g, " ")));
    return [h("tr", {}, h("td", {}, opener), h("td", { class: "number" }, String(record.partition)), h("td", { class: "number" }, count(record.offset)), h("td", { class: "time" }, time(record.timestamp)), h("td", { class: "key-cell" }, side(record.key)), h("td", { class: "value-cell" }, side(record.value))), details];
  }

  whole(record) {
    const place = h("div", { class: "whole" });
    const question = this.question();
    const draw = (shown) => replace(place,
      h("p", { class: "quiet" }, `${this.topic}-${shown.partition}, offset ${count(shown.offset)}, leader epoch ${count(shown.leader_epoch)}, ${shown.log_append_time ? "log append time" : "create time"} ${time(shown.timestamp)}`),
      this.part("Key", shown, shown.key, question), this.part("Value", shown, shown.value, question),
      shown.headers.length > 0 && h("div", {}, h("h2", { class: "small-title" }, "Headers"), h("dl", { class: "headers" }, shown.headers.map((header) => h("div", {}, h("dt", {}, header.name), h("dd", {}, header.value.text))))));
    draw(record);
    if (record.key.cut || record.value.cut) {
      place.append(button("Show all of it", async () => {
        try {
          draw(await post("/api/messages/one", { topic: this.topic, partition: record.partition, offset: record.offset, key: question.key, value: question.value }));
        } catch (error) {
          notify(error.message, "bad");
        }
      }));
    }
    return place;
  }

  part(title, record, part, question) {
    const side = title.toLowerCase();
    const bytesAt = `/api/messages/bytes?${new URLSearchParams({ topic: this.topic, partition: record.partition, offset: record.offset, side })}`;
    return h("div", { class: "part" },
      h("div", { class: "part-head" }, h("h2", { class: "small-title" }, title), h("span", { class: "quiet" }, part.format, part.size === null ? "" : `, ${bytes(part.size)}`, part.cut ? ", cut" : ""),
        part.format !== "null" && copyButton(() => part.text), part.format !== "null" && h("a", { href: bytesAt, download: "" }, "Download bytes")),
      part.note && h("p", { class: "note" }, part.note),
      h("pre", { tabindex: "0", role: "group", "aria-label": `${title} of ${record.partition}:${record.offset}` }, part.text));
  }

  async download() {
    try {
      await download("/api/messages/download", { ...this.question(), limit: 10000 }, `${this.topic}.jsonl`);
    } catch (error) {
      notify(error.message, "bad");
    }
  }
}

let formats = null;

/** What the console cannot decode for want of a package is not offered. */
async function offerFormats(selects) {
  try {
    formats ??= await get("/api/formats");
  } catch {
    return;
  }
  for (const option of selects.flatMap((each) => [...each.options])) {
    if (formats[option.value] === false) {
      option.disabled = true;
      option.textContent += " (needs moldau[formats])";
    }
  }
}

let asked = 0;

/** Tells where Kafka's default partitioner puts a key, once typing pauses; null: nowhere in particular. */
function tellPartition(topic, keyOf, tell) {
  clearTimeout(asked);
  const key = keyOf();
  if (key === null || key.format === "null") {
    tell(null);
    return;
  }
  asked = setTimeout(async () => {
    try {
      const found = await post("/api/messages/partition-of-key", { topic, key });
      if (JSON.stringify(keyOf()) === JSON.stringify(key)) tell(found.partition);
    } catch {
      // Half a number in hexadecimal is no key yet.
      tell(null);
    }
  }, 200);
}

function produce(topic, after) {
  openDialog(`Produce to ${topic}`, (close) => {
    const formats = [["text", "text"], ["json", "JSON"], ["hex", "hexadecimal"], ["base64", "base64"], ["null", "null"]];
    const key = h("input", { type: "text", spellcheck: "false", autocomplete: "off", autofocus: true });
    const keyFormat = select(formats, "text");
    const value = h("textarea", { rows: 8, spellcheck: "false" });
    const valueFormat = select(formats, "text");
    const partition = h("input", { type: "number", min: 0, placeholder: "by the key" });
    const headers = h("textarea", { rows: 2, spellcheck: "false", placeholder: "source=console" });
    const again = h("input", { type: "checkbox" });
    const keyField = field("Key", key, "empty: no key");
    const hint = keyField.querySelector("small");
    hint.setAttribute("aria-live", "polite");
    const keyOf = () => (key.value === "" && keyFormat.value === "text" ? null : { format: keyFormat.value, text: key.value });
    const tell = () => tellPartition(topic, keyOf, (found) => {
      hint.textContent = found !== null ? `goes to partition ${found} by default` : keyOf() === null ? "empty: no key" : "";
    });
    key.addEventListener("input", tell);
    keyFormat.addEventListener("input", tell);
    return actionForm([
      h("div", { class: "fields" }, keyField, field("Key is", keyFormat)),
      field("Value", value),
      h("div", { class: "fields" }, field("Value is", valueFormat), field("Partition", partition)),
      field("Headers", headers, "one a line, as name=value"),
      h("label", { class: "check" }, again, "keep this open"),
    ], "Send", async () => {
      const sent = await post("/api/messages/produce", {
        topic,
        key: keyOf(),
        value: { format: valueFormat.value, text: value.value },
        partition: partition.value,
        headers: headers.value.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
          const at = line.indexOf("=");
          return { name: at < 0 ? line : line.slice(0, at), value: at < 0 ? null : { format: "text", text: line.slice(at + 1) } };
        }),
      });
      notify(`Sent to partition ${sent.partition}, offset ${count(sent.offset)}.`);
      if (!again.checked) close();
      after();
    }, { cancel: close });
  }, { wide: true });
}

