// The brokers, with how much each leads and has.

import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { count } from "../format.js";
import { bars } from "../plots.js";
import { badge, card, link, table } from "../widgets.js";

export function show(main, page) {
  page.title("Brokers");
  const body = h("div", {});
  replace(main, h("h1", {}, "Brokers"), body);
  page.live(body, 3000, (signal) => get("/api/brokers", {}, signal), (data) => {
    replace(body,
      table("Brokers", [
        { label: "Broker", cell: (row) => link(`/brokers/${row.id}`, String(row.id)) },
        { label: "Address", cell: (row) => (row.host ? `${row.host}:${row.port}` : "–") },
        { label: "Rack", cell: (row) => row.rack ?? "–" },
        { label: "State", cell: (row) => (row.fenced ? badge("fenced", "bad") : badge("active", "good")) },
        { label: "Leads", number: true, cell: (row) => count(row.leaders) },
        { label: "Replicas", number: true, cell: (row) => count(row.replicas) },
        { label: "Not in sync", number: true, cell: (row) => (row.out_of_sync ? badge(count(row.out_of_sync), "warning") : "0") },
      ], data.rows),
      card("Partitions led", bars("Partitions led", data.rows.map((row) => ({ name: `broker ${row.id}`, value: row.leaders, href: `/brokers/${row.id}` })))));
  });
}
