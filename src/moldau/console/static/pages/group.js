// One group: members, the assignment as a picture, lag by partition, configs, and resetting offsets after a preview.

import { get, post, session } from "../api.js";
import { go } from "../app.js";
import { actionForm, confirmByName, notify, openDialog } from "../dialogs.js";
import { h, replace } from "../dom.js";
import { count, duration, plural, readPartitions, readTime } from "../format.js";
import { assignmentPicture, linePlot } from "../plots.js";
import { topicField } from "../suggest.js";
import { badge, button, card, crumbs, empty, facts, field, link, select, stateBadge, table, topicPath } from "../widgets.js";
import { showConfigs } from "./configs.js";

export function show(main, page) {
  const [id] = page.parameters;
  page.title(id);
  const [body, configs, actions] = [h("div", {}), h("div", {}), h("div", { class: "buttons" })];
  replace(main, crumbs(link("/groups", "Groups"), h("span", {}, id)), h("div", { class: "title-line" }, h("h1", { class: "name" }, id), actions), body, configs);
  const points = [];
  let refresh = () => {};
  let drawn = false;
  refresh = page.live(body, 2000, (signal) => get("/api/group", { id }, signal), (group) => {
    // A coordinator lists members in any order: rows are not to jump from one refresh to the next.
    group.members.sort((one, other) => one.client_id.localeCompare(other.client_id) || one.id.localeCompare(other.id));
    const known = group.offsets.filter((row) => row.lag !== null);
    points.push([Date.now(), known.reduce((sum, row) => sum + row.lag, 0)]);
    if (points.length > 150) points.shift();
    replace(body, head(group, points), assignment(group), offsets(group, id, refresh), members(group, id, refresh), topology(group));
    if (drawn) return;
    drawn = true;
    if (session.may_change) drawActions(actions, group, refresh);
    if (group.type !== "classic") {
      const place = h("div", {});
      replace(configs, card("Configs", place));
      showConfigs(place, page, id, "group");
    }
  });
}

function drawActions(actions, group, refresh) {
  replace(actions,
    button("Reset offsets", () => resetOffsets(group.id, refresh), { class: "primary" }),
    button("Delete group", () => confirmByName(`Delete ${group.id}`, group.id, ["Its offsets are forgotten for good. It must have no members."], "Delete group", async (confirmed) => {
      await post("/api/groups/delete", { id: group.id, confirmed });
      notify(`Group ${group.id} is deleted.`);
      go("/groups");
    }), { class: "danger" }));
}

function head(group, points) {
  const lag = group.offsets.filter((row) => row.lag !== null).reduce((sum, row) => sum + row.lag, 0);
  const seconds = group.offsets.map((row) => row.lag_s).filter((value) => value !== null);
  return h("div", { class: "columns" },
    card(null, facts([
      ["Kind", group.type],
      ["State", stateBadge(group.state)],
      ["Members", count(group.members.length)],
      ["Lag, records", count(lag)],
      ["Lag, time", seconds.length ? duration(Math.max(...seconds)) : "–"],
      group.assignor ? ["Assignor", group.assignor] : null,
      group.protocol_type ? ["Protocol", group.protocol_type] : null,
      group.epoch === null ? null : ["Epoch", `${count(group.epoch)}, assignment ${count(group.assignment_epoch)}`],
      ["Coordinator", link(`/brokers/${group.coordinator}`, `broker ${group.coordinator}`)],
    ])),
    card("Lag, records", linePlot("Lag in records", points, { width: 480, height: 110 })));
}

function assignment(group) {
  const partitions = [...new Map([
    ...group.members.flatMap((member) => Object.entries(member.assignment).flatMap(([topic, numbers]) => numbers.map((partition) => ({ topic, partition })))),
    ...group.offsets,
  ].map((each) => [`${each.topic}\n${each.partition}`, each])).values()].sort((a, b) => (a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : a.partition - b.partition));
  if (!partitions.length || group.type === "streams") return null;
  return card("Assignment", assignmentPicture(group.members, partitions));
}

function offsets(group, id, refresh) {
  if (group.offsets_error) return card("Offsets", h("p", { class: "box warning" }, group.offsets_error.message));
  if (!group.offsets.length) return card("Offsets", empty("Nothing is committed yet."));
  const names = new Map(group.members.map((member) => [member.id, member]));
  const shared = group.type === "share";
  const topics = [...new Set(group.offsets.map((row) => row.topic))];
  return card("Offsets", table("Offsets", [
    { label: "Topic", class: "name", cell: (row) => link(topicPath(row.topic), row.topic) },
    { label: "Partition", number: true, cell: (row) => String(row.partition) },
    { label: shared ? "Start" : "Committed", number: true, cell: (row) => (row.offset === null ? "–" : link(`${topicPath(row.topic, "messages")}?partitions=${row.partition}&from=offset&at=${row.offset}`, count(row.offset))) },
    { label: "End", number: true, cell: (row) => count(row.end) },
    { label: "Lag, records", number: true, cell: (row) => count(row.lag) },
    { label: "Lag, time", number: true, cell: (row) => duration(row.lag_s) },
    ...(shared ? [{ label: "In flight", number: true, cell: (row) => count(row.in_flight) }] : [{ label: "Read by", cell: (row) => (row.member ? (names.get(row.member)?.client_id || row.member) : h("span", { class: "quiet" }, "nobody")) }]),
  ], group.offsets),
  session.may_change && h("div", { class: "buttons" }, topics.slice(0, 20).map((topic) => button(`Forget ${topic}`, () => openDialog(`Forget the offsets of ${topic}`, (close) => actionForm(h("p", {}, `Group ${id} forgets how far it was in ${topic}. It must not be reading it now.`), "Forget them", async () => {
    await post("/api/groups/forget-offsets", { id, topic });
    close();
    notify(`The offsets of ${topic} are forgotten.`);
    refresh();
  }, { danger: true, cancel: close })), { class: "small" }))));
}

function members(group, id, refresh) {
  if (!group.members.length) return card("Members", empty("It has no members now."));
  const has = (member) => {
    if (member.tasks) return Object.entries(member.tasks.active).map(([name, numbers]) => `${name}: ${numbers.join(", ")}`).join("; ");
    return Object.entries(member.assignment).map(([topic, numbers]) => `${topic}: ${numbers.join(", ")}`).join("; ");
  };
  return card("Members", table("Members", [
    { label: "Client id", class: "name", cell: (row) => row.client_id || "–" },
    { label: "Member id", class: "id", cell: (row) => h("code", {}, row.id) },
    { label: "Host", cell: (row) => row.host },
    { label: "Epoch", number: true, cell: (row) => count(row.epoch) },
    { label: "Has", cell: (row) => has(row) || h("span", { class: "quiet" }, "nothing") },
    { label: "", cell: (row) => session.may_change && group.type === "classic" && button("Remove", () => openDialog("Remove a member", (close) => actionForm(h("p", {}, `${row.client_id} (${row.id}) leaves the group. If it still runs, it joins again.`), "Remove it", async () => {
      await post("/api/groups/remove-member", { id, member: row.id, instance_id: row.instance_id });
      close();
      notify(`${row.client_id || row.id} has left the group.`);
      refresh();
    }, { danger: true, cancel: close })), { class: "small", "aria-label": `Remove ${row.id}` }) },
  ], group.members));
}

function topology(group) {
  if (!group.subtopologies?.length) return null;
  return card("Topology", table("Topology", [
    { label: "Subtopology", cell: (row) => row.id },
    { label: "Reads", cell: (row) => row.sources.join(", ") },
    { label: "Repartitions", cell: (row) => row.repartitions.join(", ") || "–" },
    { label: "Changelogs", cell: (row) => row.changelogs.join(", ") || "–" },
  ], group.subtopologies));
}

async function resetOffsets(id, refresh) {
  let group;
  try {
    group = await get("/api/group", { id });
  } catch (error) {
    notify(error.message, "bad");
    return;
  }
  const topics = [...new Set(group.offsets.map((row) => row.topic))];
  openDialog(`Reset offsets of ${id}`, (close) => {
    const { input: topic, field: topicPlace } = topicField("Topic", { value: topics[0] ?? "", first: topics, autofocus: true });
    const every = h("input", { type: "checkbox", checked: topics.length > 1 });
    const partitions = h("input", { type: "text", placeholder: "all" });
    const where = select([["earliest", "to the beginning"], ["latest", "to the end"], ["offset", "to an offset"], ["time", "to a time"], ["shift", "by so many records"], ["current", "to where it is"]], "earliest");
    const number = h("input", { type: "text", autocomplete: "off" });
    const numberField = field("Number", number);
    const place = h("div", { "aria-live": "polite" });
    let previewed = null;
    const forget = () => {
      previewed = null;
      replace(place);
      form.submitButton.textContent = "Preview";
      form.submitButton.disabled = false;
      const needs = { offset: "Offset", time: "Time", shift: "Records, back if negative" }[where.value];
      numberField.hidden = !needs;
      numberField.querySelector("label").textContent = needs ?? "Number";
      number.placeholder = where.value === "time" ? "2026-01-31 12:00 or -2h" : "";
      topicFields.hidden = every.checked;
    };
    const question = () => {
      const chosen = {};
      if (every.checked) for (const row of group.offsets) (chosen[row.topic] ??= []).push(row.partition);
      else {
        const numbers = readPartitions(partitions.value);
        if (numbers === null) throw new Error("Partitions are written as 0,2 or 0-3.");
        if (!topic.value.trim()) throw new Error("Name a topic.");
        chosen[topic.value.trim()] = numbers.length ? numbers : null;
      }
      const body = { id, topics: chosen, where: where.value };
      if (where.value === "time") {
        body.number = readTime(number.value);
        if (body.number === null) throw new Error("A time is written as 2026-01-31 12:00, or -2h for two hours ago.");
        body.number = Math.round(body.number);
      } else if (!numberField.hidden) {
        if (!/^[+-]?\d+$/.test(number.value.trim())) throw new Error("A whole number is missing.");
        body.number = Number(number.value);
      }
      return body;
    };
    const topicFields = h("div", { class: "fields" }, topicPlace, field("Partitions", partitions));
    const form = actionForm([
      topics.length > 0 && h("label", { class: "check" }, every, `all ${plural(group.offsets.length, "partition")} that it has offsets of`),
      topicFields,
      h("div", { class: "fields" }, field("Where to", where), numberField),
      place,
    ], "Preview", async () => {
      if (previewed === null) {
        const found = await post("/api/groups/reset/preview", question());
        previewed = found;
        replace(place, preview(found));
        form.submitButton.textContent = found.members ? "It has members" : "Set these offsets";
        return;
      }
      const done = await post("/api/groups/reset", { id, offsets: previewed.rows });
      close();
      notify(`The offsets of ${plural(done.partitions, "partition")} are set.`);
      refresh();
    }, { cancel: close, isDisabled: () => Boolean(previewed?.members) || previewed?.rows.length === 0 });
    for (const control of [topic, every, partitions, where, number]) control.addEventListener("input", forget);
    forget();
    return form;
  }, { wide: true });
}

function preview(found) {
  const change = (row) => (row.before === null ? "–" : row.after === row.before ? "0" : `${row.after > row.before ? "+" : "−"}${count(Math.abs(row.after - row.before))}`);
  return h("div", { class: "box preview" },
    h("p", {}, "Nothing is written yet. These offsets would be set:"),
    found.notes.map((note) => h("p", { class: "note" }, badge("note", "warning"), " ", note)),
    table("Offsets to set", [
      { label: "Topic", cell: (row) => row.topic },
      { label: "Partition", number: true, cell: (row) => String(row.partition) },
      { label: "Now", number: true, cell: (row) => count(row.before) },
      { label: "Then", number: true, cell: (row) => count(row.after) },
      { label: "Change", number: true, cell: change },
    ], found.rows));
}
