// What was asked: the command, the cluster, where op times come from; and everything to take away.
import * as format from "./format";
import { onKey } from "./canvas";
import { categoryColour } from "./colours";
import { CopyButton, download } from "./parts";
import { phases, type Result } from "./result";
import type { Store } from "./store";
import { trainingOf } from "./training";
import type { Answer, Cluster, Cost, Data } from "./types";

export function readWith({ made_with = {} }: Answer): string[] {
  return Object.entries(made_with).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
}

export function Asked({ result, store, data }: { result: Result; store: Store; data: Data }) {
  const { answer, command, costs, cluster } = result.raw;
  const rows: [string, string][] = [];
  const add = (name: string, value: string | number | null | undefined) => {
    if (value !== undefined && value !== null && value !== "") rows.push([name, String(value)]);
  };
  add("emplace", data.version);
  add("model", answer.model);
  add("graph", answer.graph && result.numOps > 0 ? `${answer.graph}, ${format.counted(result.numOps, "op")}` : answer.graph);
  add("read with", readWith(answer).join(", "));
  add("cluster", answer.cluster ?? cluster?.name);
  if (result.isAnswer) add("objective", answer.objective === "throughput" ? "the period of a stream of steps" : "the time of one step");
  add("placer", answer.placer && `${answer.placer}, ${answer.scheduler} order, seed ${answer.seed}`);
  if (result.raw.training) {
    const { policy, graphs, clusters, seed } = trainingOf(result);
    add("policy", `${policy}, seed ${seed}`);
    add("graphs", graphs.join(", "));
    add("clusters", clusters.join(", "));
  }
  const { budget } = answer;
  if (budget) {
    add("budget", [
      budget.seconds !== null ? `${budget.seconds} s` : "",
      budget.evaluations !== null ? format.counted(budget.evaluations, "evaluation") : "",
      format.counted(budget.threads, "thread"),
    ].filter(Boolean).join(", "));
  }
  if (costs) {
    add("op times", costs.filter((cost) => cost.ops > 0).map((cost) => `${format.percent(cost.share)} of the time ${sourceOf(cost)}`).join(", "));
  }
  const slug = result.raw.title.replace(/[^A-Za-z0-9.-]+/g, "-");
  return (
    <section id="asked">
      <h2>What was asked</h2>
      {command && (
        <div class="command">
          <code>{command}</code>
          <CopyButton text={command} />
        </div>
      )}
      <div class="columns">
        <table class="plain facts">
          <tbody>
            {rows.map(([name, value]) => (
              <tr>
                <th scope="row">{name}</th>
                <td>{value}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {cluster && <Drawing cluster={cluster} store={store} />}
      </div>
      <p class="buttons downloads">
        <button onClick={() => download(`${slug}.json`, JSON.stringify({ ...data, results: [result.raw] }), "application/json")}>
          all data (JSON)
        </button>
        <button onClick={() => download(`${slug}-answer.json`, JSON.stringify(answer, null, 2), "application/json")}>answer (JSON)</button>
        {result.hasTimeline && (
          <>
            <button onClick={() => download(`${slug}-ops.csv`, opsCsv(result), "text/csv")}>ops (CSV)</button>
            <button onClick={() => download(`${slug}-transfers.csv`, transfersCsv(result), "text/csv")}>transfers (CSV)</button>
          </>
        )}
        {result.raw.training?.step && (
          <button onClick={() => download(`${slug}-curves.csv`, curvesCsv(result), "text/csv")}>curves (CSV)</button>
        )}
        {result.raw.comparison && (
          <button onClick={() => download(`${slug}-runs.csv`, runsCsv(result), "text/csv")}>runs (CSV)</button>
        )}
      </p>
    </section>
  );
}

function sourceOf({ source, errors }: Cost): string {
  if (source === "measured") return source;
  if (source !== "analytic") return `from ${source}`;
  const off = (errors ?? []).map(({ kind, ops, error }) => `${format.percent(error)} off the measured times of ${format.counted(ops, "op")} on ${kind}`);
  return `estimated by the cost model, ${off.length > 0 ? `which is on average ${format.joined(off)}` : "with no measured op times to compare it with"}`;
}

function csv(rows: (string | number | boolean | null | undefined)[][]): string {
  const cell = (value: string | number | boolean | null | undefined) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(cell).join(",") + "\n").join("");
}

// Of a stream with a row for each step.
export function opsCsv(result: Result): string {
  const { ops, cluster, steps } = result.raw;
  const rows: (string | number)[][] = [
    [...(result.isStream ? ["step"] : []), "op", "type", "module", "phase", "device", "start_ns", "length_ns", "output_bytes"],
  ];
  steps!.forEach(({ start, length }, step) => {
    for (let op = 0; op < result.numOps; ++op) {
      rows.push([
        ...(result.isStream ? [step + 1] : []), ops!.name[op], ops!.types[ops!.type[op]], result.moduleOf(op), phases[ops!.phase[op]],
        cluster!.devices[ops!.device[op]].name, start[op], length[op], ops!.bytes[op],
      ]);
    }
  });
  return csv(rows);
}

function transfersCsv(result: Result): string {
  const { ops, cluster, steps } = result.raw;
  const rows: (string | number)[][] = [
    [...(result.isStream ? ["step"] : []), "op", "from", "to", "channel", "bytes", "queued_ns", "start_ns", "length_ns"],
  ];
  steps!.forEach(({ transfers }, step) => {
    transfers.op.forEach((op, i) => {
      rows.push([
        ...(result.isStream ? [step + 1] : []),
        ops!.name[op], cluster!.devices[transfers.from[i]].name, cluster!.devices[transfers.to[i]].name,
        transfers.channel[i] < 0 ? "" : cluster!.channels[transfers.channel[i]], transfers.bytes[i],
        transfers.queued[i], transfers.start[i], transfers.length[i],
      ]);
    });
  });
  return csv(rows);
}

function runsCsv(result: Result): string {
  const rows = result.raw.comparison!.runs.map((run) => [
    run.placer, run.scheduler, run.seed, run.period_ns ?? run.step_ns, run.fits, run.gap, run.transfer_bytes, run.evaluations, run.seconds,
  ]);
  return csv([["placer", "scheduler", "seed", "time_ns", "fits", "gap", "transfer_bytes", "evaluations", "seconds"], ...rows]);
}

function curvesCsv(result: Result): string {
  const columns = Object.entries(result.raw.training!);
  return csv([columns.map(([name]) => name), ...columns[0][1].map((_, i) => columns.map(([, values]) => values[i]))]);
}

// Many devices: a box for each machine, or for each kind where their names say of none.
function Machines({ cluster, store, words }: { cluster: Cluster; store: Store; words: string[] }) {
  const machines = new Map<string, number[]>();
  const kinds = new Map<string, number>();
  cluster.devices.forEach(({ name, kind }, i) => {
    const machine = name.includes(".") ? name.slice(0, name.lastIndexOf(".")) : kind;
    machines.set(machine, [...(machines.get(machine) ?? []), i]);
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  });
  return (
    <figure class="cluster">
      <div class="machines">
        {[...machines].map(([machine, devices]) => (
          <div>
            <b>{machine}</b>
            <span>
              {devices.map((id) => {
                const { name, kind, memory } = cluster.devices[id];
                return (
                  <button
                    title={`${name}, ${kind}, ${format.bytes(memory)}`}
                    aria-label={name}
                    style={{ background: categoryColour(id) }}
                    onMouseEnter={() => store.hover({ type: "device", id })}
                    onMouseLeave={() => store.hover(null)}
                    onClick={() => store.select({ type: "device", id })}
                  />
                );
              })}
            </span>
          </div>
        ))}
      </div>
      <figcaption class="hint">{format.joined([...[...kinds].map(([kind, n]) => `${n} × ${kind}`), ...words.slice(0, 6)])}</figcaption>
    </figure>
  );
}

// Devices around a circle, a line for each pair that is linked, darker for more bandwidth.
function Drawing({ cluster, store }: { cluster: Cluster; store: Store }) {
  const count = cluster.devices.length;
  const classes = new Map<string, number>();
  for (const [, , , bandwidth, latency] of cluster.links) {
    const name = `${format.perSecond(bandwidth, "B/s")}, ${format.time(latency)} latency`;
    classes.set(name, (classes.get(name) ?? 0) + 1);
  }
  const words = [...classes].map(([name, links]) => `${format.counted(links, "link")} of ${name}`);
  if (count > 16) return <Machines cluster={cluster} store={store} words={words} />;
  const [width, height] = [380, count > 2 ? 230 : 120];
  const [boxWidth, boxHeight] = [104, 40];
  const place = (i: number): [number, number] => {
    const angle = (2 * Math.PI * i) / count - Math.PI / 2 - (count % 2 === 0 && count > 2 ? Math.PI / count : 0);
    if (count <= 2) return [width / 2 + (i === 0 ? -100 : 100) * (count === 1 ? 0 : 1), height / 2];
    return [width / 2 + Math.cos(angle) * (width / 2 - boxWidth / 2 - 4), height / 2 + Math.sin(angle) * (height / 2 - boxHeight / 2 - 4)];
  };
  const fastest = Math.max(...cluster.links.map((link) => link[3]), 1);
  const pairs = cluster.links.filter(([from, to]) => from < to || !cluster.links.some(([a, b]) => a === to && b === from));
  return (
    <figure class="cluster">
      <svg viewBox={`0 0 ${width} ${height}`} role="group" aria-label={`Cluster: ${words.join("; ")}`}>
        {pairs.map(([from, to, channel, bandwidth, latency]) => {
          const [[ax, ay], [bx, by]] = [place(from), place(to)];
          const strength = Math.sqrt(bandwidth / fastest);
          return (
            <line x1={ax} y1={ay} x2={bx} y2={by} stroke="currentColor" stroke-width={1 + 2 * strength} stroke-opacity={0.12 + 0.3 * strength}>
              <title>
                {`${cluster.devices[from].name} – ${cluster.devices[to].name}: ${format.perSecond(bandwidth, "B/s")}, ${format.time(latency)}, channel ${cluster.channels[channel]}`}
              </title>
            </line>
          );
        })}
        {cluster.devices.map((device, i) => {
          const [x, y] = place(i);
          const select = () => store.select({ type: "device", id: i });
          return (
            <g
              class="link"
              transform={`translate(${x - boxWidth / 2}, ${y - boxHeight / 2})`}
              onMouseEnter={() => store.hover({ type: "device", id: i })}
              onMouseLeave={() => store.hover(null)}
              onClick={select}
              role="button"
              tabindex={0}
              aria-label={device.name}
              onKeyDown={(event) => onKey(event, { Enter: select, " ": select })}
            >
              <rect width={boxWidth} height={boxHeight} rx="6" fill={categoryColour(i)} />
              <text x={boxWidth / 2} y="17" text-anchor="middle" font-weight="600">
                {device.name}
              </text>
              <text x={boxWidth / 2} y="31" text-anchor="middle" class="small">
                {device.kind}, {format.bytes(device.memory)}
              </text>
            </g>
          );
        })}
      </svg>
      <figcaption class="hint">{format.joined(words.slice(0, 4))}</figcaption>
    </figure>
  );
}
