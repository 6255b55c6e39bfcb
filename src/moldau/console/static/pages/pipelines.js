// Runs of pipelines and loads, with plots of their rounds.

import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { bytes, count, duration, rate, time } from "../format.js";
import { bars, linePlot } from "../plots.js";
import { badge, card, crumbs, empty, facts, link, table } from "../widgets.js";

const LEVELS = { running: "good", ended: "", failed: "bad", silent: "warning" };

export function show(main, page) {
  if (page.parameters[1]) showRun(main, page, page.parameters[0], page.parameters[1]);
  else showList(main, page);
}

function showList(main, page) {
  page.title("Pipelines");
  const list = h("div", {});
  replace(main, h("h1", {}, "Pipelines"), list);
  page.live(list, 3000, (signal) => get("/api/pipelines", {}, signal), (data) => {
    replace(list, data.rows.length ? table("Runs", [
      { label: "Run", class: "name", cell: (row) => link(`/pipelines/${row.directory}/${encodeURIComponent(row.file)}`, row.name || row.file) },
      { label: "State", cell: (row) => badge(row.state, LEVELS[row.state]) },
      { label: "Began", cell: (row) => time(row.began_ms) },
      { label: "Took", number: true, cell: (row) => duration(row.seconds) },
      { label: "Rounds", number: true, cell: (row) => count(row.rounds) },
      { label: "Records in", number: true, cell: (row) => count(row.rows) },
      { label: "Rows out", number: true, cell: (row) => count(row.rows_out) },
      { label: "Written", number: true, cell: (row) => bytes(row.bytes) },
      { label: "Lag", number: true, cell: (row) => count(row.lag) },
    ], data.rows) : empty("The directories have no logs of runs."));
  });
}

function showRun(main, page, directory, file) {
  page.title("Run");
  const body = h("div", {});
  const name = h("span", {}, file);
  const title = h("h1", { class: "name" }, file);
  replace(main, crumbs(link("/pipelines", "Pipelines"), name), title, body);
  page.live(body, 3000, (signal) => get("/api/pipelines/run", { directory, file }, signal), (run) => {
    title.textContent = run.name || file;
    page.title(run.name || file);
    const points = (key) => run.log.map((each) => [each.ended_ms, each[key] ?? 0]);
    replace(body,
      run.error && h("div", { class: "box bad" }, h("strong", {}, "It failed"), h("p", {}, run.error)),
      card(null, facts([
        ["State", badge(run.state, LEVELS[run.state])], ["Began", time(run.began_ms)], ["Took", duration(run.seconds)], ["Rounds", count(run.rounds)],
        ["Records in", count(run.rows)], ["Rows out", count(run.rows_out)], ["Written", bytes(run.bytes)], ["Lag", count(run.lag)],
      ])),
      h("div", { class: "columns" },
        card("Records a second", linePlot("Records a second", points("per_second"), { width: 480, waiting: "A plot needs two rounds." })),
        card("Lag, records", linePlot("Lag", points("lag"), { width: 480, waiting: "A plot needs two rounds." }))),
      Object.keys(run.phases).length > 0 && card("Where the time went", bars("Seconds by phase", Object.entries(run.phases).map(([phase, seconds]) => ({ name: phase, value: seconds })), duration)),
      run.sinks.length > 1 && card("Sinks", table("Sinks", [{ label: "Sink", cell: (row) => row.name }, { label: "Rounds", number: true, cell: (row) => count(row.rounds) }, { label: "Records in", number: true, cell: (row) => count(row.rows) }, { label: "Rows out", number: true, cell: (row) => count(row.rows_out) }], run.sinks)),
      card("Rounds", table("Rounds", [
        { label: "Ended", cell: (row) => time(row.ended_ms) }, { label: "Sink", cell: (row) => row.step || "–" }, { label: "Took", number: true, cell: (row) => duration(row.seconds) },
        { label: "Records in", number: true, cell: (row) => count(row.rows) }, { label: "A second", number: true, cell: (row) => rate(row.per_second) }, { label: "Rows out", number: true, cell: (row) => count(row.rows_out) },
        { label: "Files", number: true, cell: (row) => count(row.files) }, { label: "Written", number: true, cell: (row) => bytes(row.bytes) }, { label: "Lag", number: true, cell: (row) => count(row.lag) },
      ], [...run.log].reverse().slice(0, 100))));
  });
}
