// The controllers: who leads, who votes, how far each is.

import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { count, duration } from "../format.js";
import { badge, card, facts, table } from "../widgets.js";

export function show(main, page) {
  page.title("Quorum");
  const body = h("div", {});
  replace(main, h("h1", {}, "Quorum"), body);
  page.live(body, 2000, (signal) => get("/api/quorum", {}, signal), (data) => {
    replace(body,
      card(null, facts([["Leader", data.leader < 0 ? badge("none", "bad") : `controller ${data.leader}`], ["Epoch", count(data.epoch)], ["High watermark", count(data.high_watermark)]])),
      card("Voters", replicas("Voters", data.voters, data.leader)),
      data.observers.length > 0 && card("Observers", replicas("Observers", data.observers, data.leader)));
  });
}

function replicas(label, rows, leader) {
  const ago = (ms) => (ms === null || ms < 0 ? "–" : `${duration(Math.max(0, Date.now() - ms) / 1000)} ago`);
  return table(label, [
    { label: "Node", cell: (row) => [String(row.id), " ", row.id === leader && badge("leads", "good")] },
    { label: "Log end", number: true, cell: (row) => count(row.log_end_offset) },
    { label: "Behind", number: true, cell: (row) => count(row.lag) },
    { label: "Last fetch", cell: (row) => (row.id === leader ? "–" : ago(row.last_fetch_ms)) },
    { label: "Last caught up", cell: (row) => (row.id === leader ? "–" : ago(row.last_caught_up_ms)) },
    { label: "Listeners", cell: (row) => row.endpoints.join(", ") || "–" },
  ], rows);
}
