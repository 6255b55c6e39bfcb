// The overview: health in words, brokers, quorum, records a second.

import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { clock, count, rate } from "../format.js";
import { bars, linePlot } from "../plots.js";
import { badge, card, facts, link, table, topicPath } from "../widgets.js";

export function show(main, page) {
  page.title("Overview");
  const [head, plots] = [h("div", {}), h("div", {})];
  replace(main, h("h1", {}, "Overview"), head, plots);
  page.live(head, 3000, (signal) => get("/api/overview", {}, signal), (data) => replace(head, healthBox(data), numbers(data), brokerTable(data)));
  page.live(plots, 2000, (signal) => get("/api/rates", {}, signal), (data) => replace(plots, throughput(data)));
}

function healthBox(data) {
  const level = data.health[0].level;
  return h("div", { class: `box health ${level}` }, h("ul", {}, data.health.map(sentence)));
}

function sentence(item) {
  const since = item.since_ms ? ` since ${clock(item.since_ms)}` : "";
  const named = item.partitions.length
    ? [": ", item.partitions.map((each, index) => [index > 0 && ", ", link(topicPath(each.topic), `${each.topic}-${each.partition}`)]), item.count > item.partitions.length && ` and ${count(item.count - item.partitions.length)} more`]
    : null;
  return h("li", {}, badge({ good: "good", warning: "look", bad: "bad" }[item.level], item.level), h("span", {}, item.text.replace(/\.$/, ""), since, named, "."));
}

function numbers(data) {
  const quorum = data.quorum;
  return card(null, facts([
    ["Cluster", h("code", {}, data.cluster_id)],
    ["Topics", [link("/topics", count(data.topics)), data.internal_topics ? h("small", {}, ` and ${count(data.internal_topics)} internal`) : null]],
    ["Partitions", count(data.partitions)],
    ["Brokers", count(data.brokers.filter((broker) => !broker.fenced).length)],
    ["Controller", data.controller < 0 ? badge("none", "bad") : String(data.controller)],
    quorum.error ? ["Quorum", h("small", {}, quorum.message)] : ["Quorum", link("/quorum", `${count(quorum.voters)} ${quorum.voters === 1 ? "voter" : "voters"}, epoch ${count(quorum.epoch)}`)],
  ]));
}

function brokerTable(data) {
  return card("Brokers", table("Brokers", [
    { label: "Broker", cell: (row) => link(`/brokers/${row.id}`, String(row.id)) },
    { label: "Address", cell: (row) => (row.host ? `${row.host}:${row.port}` : "–") },
    { label: "Rack", cell: (row) => row.rack ?? "–" },
    { label: "State", cell: (row) => (row.fenced ? badge("fenced", "bad") : badge("active", "good")) },
    { label: "Leads", number: true, cell: (row) => count(row.leaders) },
    { label: "Replicas", number: true, cell: (row) => count(row.replicas) },
    { label: "Not in sync", number: true, cell: (row) => (row.out_of_sync ? badge(count(row.out_of_sync), "warning") : "0") },
  ], data.brokers));
}

function throughput(data) {
  const points = data.points.map((point) => [point.at_ms, point.per_second]);
  return h("div", { class: "columns" },
    card("Records a second", linePlot("Records a second, all topics", points, { waiting: "Measuring: the first point takes a few seconds." })),
    card("Busiest topics", data.busiest.length
      ? bars("Busiest topics", data.busiest.map((row) => ({ name: row.topic, value: row.per_second, href: topicPath(row.topic) })), rate)
      : h("p", { class: "empty" }, points.length ? "Nothing is being written now." : "Measuring…")));
}
