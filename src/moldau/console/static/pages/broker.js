// One broker: its directories and what takes the room in them, and its configs.

import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { bytes, clock, count, plural } from "../format.js";
import { badge, card, crumbs, empty, facts, link, table, topicPath } from "../widgets.js";
import { showConfigs } from "./configs.js";

export function show(main, page) {
  const [id] = page.parameters;
  page.title(`Broker ${id}`);
  const [body, configs] = [h("div", {}), h("div", {})];
  replace(main, crumbs(link("/brokers", "Brokers"), h("span", {}, id)), h("h1", {}, `Broker ${id}`), body, card("Configs", configs));
  page.live(body, 5000, (signal) => get("/api/broker", { id }, signal), (broker) => replace(body, head(broker), directories(broker)));
  showConfigs(configs, page, id, "broker");
}

function head(broker) {
  return card(null, facts([
    ["Address", broker.host ? `${broker.host}:${broker.port}` : "–"],
    ["State", broker.fenced ? badge(broker.gone_since_ms ? `gone since ${clock(broker.gone_since_ms)}` : "fenced", "bad") : badge("active", "good")],
    ["Rack", broker.rack ?? "–"],
    ["Leads", count(broker.leaders)],
    ["Replicas", count(broker.replicas)],
    ["Not in sync", count(broker.out_of_sync)],
  ]));
}

function directories(broker) {
  if (broker.directories_error) return card("Log directories", h("p", { class: "box warning" }, broker.directories_error.message));
  return card("Log directories", broker.directories.map((directory) => {
    const used = directory.total_bytes > 0 ? directory.total_bytes - directory.usable_bytes : null;
    return h("div", { class: "directory" },
      h("p", {}, h("code", {}, directory.path), directory.error && badge(directory.error, "bad"), ` ${plural(directory.replicas, "replica")}, ${bytes(directory.size)}`, used === null ? "" : `; the disk has ${bytes(directory.usable_bytes)} of ${bytes(directory.total_bytes)} left`),
      used !== null && h("progress", { max: directory.total_bytes, value: used, "aria-label": `Used of ${directory.path}` }),
      directory.largest.length ? table(`Largest replicas in ${directory.path}`, [
        { label: "Partition", class: "name", cell: (row) => link(topicPath(row.topic), `${row.topic}-${row.partition}`) },
        { label: "Size", number: true, cell: (row) => bytes(row.size) },
        { label: "Behind", number: true, cell: (row) => count(row.offset_lag) },
        { label: "", cell: (row) => row.is_future && badge("moving here") },
      ], directory.largest) : empty("It holds no replicas."));
  }));
}
