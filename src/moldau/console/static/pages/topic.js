// One topic: partitions and replicas as a picture, messages, configs, groups; more partitions, deleting.

import { get, post, session } from "../api.js";
import { go } from "../app.js";
import { actionForm, confirmByName, notify, openDialog } from "../dialogs.js";
import { h, replace } from "../dom.js";
import { bytes, count, duration, plural, rate, time } from "../format.js";
import { bars, linePlot, replicaPicture } from "../plots.js";
import { badge, button, card, crumbs, empty, facts, field, groupPath, link, stateBadge, table, tabs, topicPath } from "../widgets.js";
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
    button("Delete topic", () => confirmByName(`Delete ${name}`, name, ["All its records go with it, on all brokers, for good."], "Delete topic", async (confirmed) => {
      await post("/api/topics/delete", { name, confirmed });
      notify(`Topic ${name} is deleted.`);
      go("/topics");
    }), { class: "danger" }));
}

async function addPartitions(name) {
  const topic = await get("/api/topic", { name });
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
      : empty("No group has committed offsets of this topic."),
    data.asked < data.of_groups && h("p", { class: "quiet" }, `The first ${count(data.asked)} of ${count(data.of_groups)} groups were asked; share groups keep their offsets elsewhere.`));
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
          { label: "Transaction", cell: (row) => (row.open_since_offset === null ? "–" : badge(`open since offset ${count(row.open_since_offset)}, ${duration((Date.now() - row.last_ms) / 1000)} ago`, "warning")) },
        ], rows)
      : empty("No idempotent producer has written to this partition of late."));
  });
}
