// One topic: partitions and replicas as a picture, messages, configs, groups; more partitions, deleting it or records.

import { get, post, session } from "../api.js";
import { go } from "../app.js";
import { actionForm, confirmByName, notify, openDialog } from "../dialogs.js";
import { h, replace } from "../dom.js";
import { bytes, count, duration, plural, rate, readPartitions, readTime, time } from "../format.js";
import { bars, linePlot, replicaPicture } from "../plots.js";
import { badge, button, card, crumbs, empty, facts, field, groupPath, link, select, stateBadge, table, tabs, topicPath } from "../widgets.js";
import { showConfigs } from "./configs.js";
import { showMessages } from "./messages.js";

export function show(main, page) {
  const [name, tab = "partitions"] = page.parameters;
  page.title(name);
  const body = h("div", {});
  const actions = h("div", { class: "buttons" });
  replace(main,
    crumbs(link("/topics", "Topics"), h("span", {}, name)),
    h("div", { class: "title-line" }, h("h1", { class: "name" }, name), actions),
    tabs("Parts of the topic", [
      ["partitions", "Partitions", topicPath(name)],
      ["messages", "Messages", topicPath(name, "messages")],
      ["configs", "Configs", topicPath(name, "configs")],
      ["groups", "Groups", topicPath(name, "groups")],
      ["producers", "Producers", topicPath(name, "producers")],
    ], tab),
    body);
  const parts = { partitions: showPartitions, messages: showMessages, configs: (...all) => showConfigs(...all, "topic"), groups: showGroups, producers: showProducers };
  (parts[tab] ?? showPartitions)(body, page, name);
  if (session.may_change) drawActions(actions, name);
}

function drawActions(actions, name) {
  replace(actions,
    button("Add partitions", () => addPartitions(name)),
    button("Delete records", () => deleteRecords(name), { class: "danger" }),
    button("Delete topic", () => confirmByName(`Delete ${name}`, name, ["All its records go with it, on all brokers, for good."], "Delete topic", async (confirmed) => {
      await post("/api/topics/delete", { name, confirmed });
      notify(`Topic ${name} is deleted.`);
      go("/topics");
    }), { class: "danger" }));
}

async function addPartitions(name) {
  let topic;
  try {
    topic = await get("/api/topic", { name });
  } catch (error) {
    notify(error.message, "bad");
    return;
  }
  openDialog(`Add partitions to ${name}`, (close) => {
    const number = h("input", { type: "number", min: topic.partitions + 1, value: topic.partitions + 1, required: true, autofocus: true });
    return actionForm([
      h("p", {}, `It has ${plural(topic.partitions, "partition")}. Records with a key go to another partition afterwards, and partitions cannot be taken away again.`),
      field("How many it is to have", number),
    ], "Add partitions", async () => {
      await post("/api/topics/add-partitions", { name, partitions: Number(number.value) });
      close();
      notify(`${name} has ${number.value} partitions.`);
      go(topicPath(name));
    }, { cancel: close });
  });
}

/** What goes is shown first, partition by partition; then the name is typed. */
function deleteRecords(name) {
  openDialog(`Delete records of ${name}`, (close) => {
    const partitions = h("input", { type: "text", placeholder: "all", autocomplete: "off" });
    const upTo = select([["offset", "before an offset"], ["time", "before a time"], ["end", "all there are now"]], "offset", { autofocus: true });
    const number = h("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    const numberField = field("Offset", number);
    const confirmed = h("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    const confirmField = field("Type the topic's name to confirm", confirmed, name);
    const place = h("div", { "aria-live": "polite" });
    let previewed = null;
    const going = () => previewed.rows.filter((row) => row.before > row.start);
    const isDisabled = () => previewed !== null && (going().length === 0 || confirmed.value !== name);
    const draw = () => {
      numberField.hidden = upTo.value === "end";
      numberField.querySelector("label").textContent = upTo.value === "time" ? "Time" : "Offset";
      number.placeholder = upTo.value === "time" ? "2026-01-31 12:00 or -7d" : "the first one that stays";
      confirmField.hidden = previewed === null || going().length === 0;
      form.submitButton.textContent = previewed === null ? "Preview" : "Delete these records";
      form.submitButton.disabled = isDisabled();
    };
    const forget = () => {
      previewed = null;
      confirmed.value = "";
      replace(place);
      draw();
    };
    const question = () => {
      const body = { name, up_to: upTo.value, partitions: readPartitions(partitions.value) };
      if (body.partitions === null) throw new Error("Partitions are written as 0,2 or 0-3.");
      if (upTo.value === "time") {
        body.number = readTime(number.value);
        if (body.number === null) throw new Error("A time is written as 2026-01-31 12:00, or -7d for a week ago.");
        body.number = Math.max(0, Math.round(body.number));
      } else if (upTo.value === "offset") {
        if (!/^\d+$/.test(number.value.trim())) throw new Error("An offset is a whole number.");
        body.number = Number(number.value);
      }
      return body;
    };
    const form = actionForm([
      h("p", {}, "The oldest records of partitions go, for good and on all brokers. Offsets are not used again."),
      h("div", { class: "fields" }, field("Which", upTo), numberField, field("Partitions", partitions)),
      place,
      confirmField,
    ], "Preview", async () => {
      if (previewed === null) {
        previewed = await post("/api/topics/delete-records/preview", question());
        replace(place, deletionPreview(previewed));
        draw();
        if (!confirmField.hidden) confirmed.focus();
        return;
      }
      const before = Object.fromEntries(going().map((row) => [row.partition, row.before]));
      await post("/api/topics/delete-records", { name, before, confirmed: confirmed.value });
      close();
      notify(`Records of ${plural(Object.keys(before).length, "partition")} are deleted.`);
      go(`${location.pathname}${location.search}`);
    }, { danger: true, cancel: close, isDisabled });
    for (const control of [partitions, upTo, number]) control.addEventListener("input", forget);
    confirmed.addEventListener("input", draw);
    draw();
    return form;
  }, { wide: true });
}

function deletionPreview(found) {
  const total = found.rows.reduce((sum, row) => sum + Math.max(0, row.before - row.start), 0);
  return h("div", { class: "box preview" },
    h("p", {}, total ? `Nothing is deleted yet. ${plural(total, "offset")} would go:` : "Nothing would go: no partition has records before that."),
    found.notes.map((note) => h("p", { class: "note" }, badge("note", "warning"), " ", note)),
    total > 0 && table("Records to delete", [
      { label: "Partition", number: true, cell: (row) => String(row.partition) },
      { label: "Begins at", number: true, cell: (row) => count(row.start) },
      { label: "Then at", number: true, cell: (row) => count(row.before) },
      { label: "Ends at", number: true, cell: (row) => count(row.end) },
      { label: "Offsets that go", number: true, cell: (row) => count(row.before - row.start) },
    ], found.rows));
}

function showPartitions(body, page, name) {
  const [plot, rest] = [h("div", {}), h("div", {})];
  replace(body, plot, rest);
  const points = [];
  let before = null;
  page.live(rest, 3000, (signal) => get("/api/topic", { name }, signal), (topic) => {
    const ends = topic.rows.reduce((sum, row) => sum + (row.end ?? 0), 0);
    const now = Date.now();
    if (before && ends >= before.ends) points.push([now, ((ends - before.ends) * 1000) / (now - before.at)]);
    before = { ends, at: now };
    if (points.length > 120) points.shift();
    replace(plot, summary(topic, points));
    replace(rest, pictures(topic), partitionTable(topic));
  });
}

function summary(topic, points) {
  const records = topic.rows.reduce((sum, row) => sum + (row.end ?? 0) - (row.start ?? 0), 0);
  const sizes = topic.rows.flatMap((row) => Object.values(row.sizes ?? {}));
  return h("div", { class: "columns" },
    card(null, facts([
      ["Partitions", count(topic.partitions)],
      ["Replication factor", count(topic.replicas)],
      ["Records", count(records)],
      ["Size of all replicas", sizes.length ? bytes(sizes.reduce((sum, size) => sum + size, 0)) : "–"],
      ["Rate", points.length ? rate(points.at(-1)[1]) : "–"],
      ["Id", h("code", {}, topic.id)],
    ])),
    card("Records a second", linePlot("Records a second", points, { width: 480, height: 110 })));
}

function pictures(topic) {
  const leaders = new Map(topic.brokers.map((broker) => [broker, 0]));
  for (const row of topic.rows) if (row.leader >= 0) leaders.set(row.leader, (leaders.get(row.leader) ?? 0) + 1);
  return h("div", { class: "columns" },
    card("Replicas", replicaPicture(topic)),
    card("Leaders by broker", bars("Leaders by broker", [...leaders].map(([broker, value]) => ({ name: `broker ${broker}`, value, href: `/brokers/${broker}` })))));
}

function partitionTable(topic) {
  return card("Partitions", table("Partitions", [
    { label: "Partition", number: true, cell: (row) => link(`${topicPath(topic.name, "messages")}?partitions=${row.partition}`, String(row.partition)) },
    { label: "Leader", number: true, cell: (row) => (row.leader < 0 ? badge("none", "bad") : String(row.leader)) },
    { label: "Epoch", number: true, cell: (row) => count(row.leader_epoch) },
    { label: "Replicas", cell: (row) => row.replicas.join(", ") },
    { label: "In sync", cell: (row) => (row.in_sync.length < row.replicas.length ? badge(row.in_sync.join(", ") || "none", "warning") : row.in_sync.join(", ")) },
    { label: "Start", number: true, cell: (row) => count(row.start) },
    { label: "End", number: true, cell: (row) => count(row.end) },
    { label: "Records", number: true, cell: (row) => (row.end === null ? "–" : count(row.end - row.start)) },
    { label: "Size", number: true, cell: (row) => bytes(row.sizes ? (row.sizes[String(row.leader)] ?? null) : null) },
  ], topic.rows));
}

function showGroups(body, page, name) {
  page.live(body, 10000, (signal) => get("/api/topic/groups", { name }, signal), (data) => {
    replace(body, data.rows.length
      ? table("Groups that read it", [
          { label: "Group", class: "name", cell: (row) => link(groupPath(row.id), row.id) },
          { label: "Kind", cell: (row) => row.type },
          { label: "State", cell: (row) => stateBadge(row.state) },
          { label: "Lag", number: true, cell: (row) => count(row.lag) },
        ], data.rows)
      : empty("No group has offsets of this topic."),
    data.asked < data.of_groups && h("p", { class: "quiet" }, `The first ${count(data.asked)} of ${count(data.of_groups)} groups were asked.`));
  });
}

function showProducers(body, page, name) {
  const partition = Number(page.query.get("partition") ?? 0);
  const number = h("input", { type: "number", min: 0, value: partition, onchange: () => { page.setQuery({ partition: number.value }); go(`${location.pathname}${location.search}`); } });
  const list = h("div", {});
  replace(body, h("div", { class: "toolbar" }, field("Partition", number)), list);
  page.live(list, 5000, (signal) => get("/api/topic/producers", { topic: name, partition }, signal), (rows) => {
    replace(list, rows.length
      ? table("Producers", [
          { label: "Producer id", number: true, cell: (row) => String(row.producer_id) },
          { label: "Epoch", number: true, cell: (row) => count(row.epoch) },
          { label: "Last sequence", number: true, cell: (row) => count(row.last_sequence) },
          { label: "Last written", cell: (row) => time(row.last_ms) },
          { label: "Transaction", cell: (row) => (row.open_since_offset === null ? "–" : [badge(`open since offset ${count(row.open_since_offset)}, last written ${duration((Date.now() - row.last_ms) / 1000)} ago`, "warning"), " ", link(`/transactions?hanging=${encodeURIComponent(name)}&minutes=0`, "does it hang?")]) },
        ], rows)
      : empty("No idempotent producer has written to this partition of late."));
  });
}
