// How the searches went: the best so far and the bound over time; learning curves; all runs of a
// comparison as a table and as step time against search time.
import { useState } from "preact/hooks";
import uPlot from "uplot";
import { categoryColour, theme } from "./colours";
import * as format from "./format";
import { SortedTable, type Column } from "./parts";
import { axes, fromZero, Plot } from "./plot";
import type { Result } from "./result";
import type { Store } from "./store";
import type { Answer, Search } from "./types";

const nameOf = (search: { placer?: string; seed?: number; scheduler?: string }, seeds: boolean) =>
  `${search.placer}${seeds ? `, seed ${search.seed}` : ""}`;

// Series over one axis of time, each as it was at every moment at which any of them changed.
function together(series: [number, number | null][][]): uPlot.AlignedData {
  const moments = [...new Set(series.flatMap((points) => points.map(([time]) => time)))].sort((a, b) => a - b);
  return [
    moments,
    ...series.map((points) => {
      let next = 0;
      let value: number | null = null;
      const last = points.length > 0 ? points[points.length - 1][0] : -1;
      return moments.map((moment) => {
        while (next < points.length && points[next][0] <= moment) value = points[next++][1];
        return moment <= last ? value : null;
      });
    }),
  ] as uPlot.AlignedData;
}

function Courses({ searches, store, quantity }: { searches: Search[]; store: Store; quantity: string }) {
  const [data] = useState(() => {
    const series: [number, number | null][][] = searches.map((search) =>
      search.points.map(([time, , best, fits]) => [time, fits ? best : null]),
    );
    for (const search of searches) series.push(search.points.map(([time, , , , bound]) => [time, bound > 0 ? bound : null]));
    return together(series);
  });
  const seeds = new Set(searches.map((search) => search.seed)).size > 1;
  const stepped = uPlot.paths.stepped!({ align: 1 });
  const options = () => ({
    scales: { x: fromZero },
    legend: { show: searches.length <= 12 },
    cursor: { points: { size: 6 } },
    axes: axes("seconds of search", quantity, (value) => `${value}`),
    series: [
      { label: "seconds", value: (_: uPlot, value: number | null) => (value === null ? "" : value.toFixed(2)) },
      ...searches.map((search, i) => ({
        label: nameOf(search, seeds),
        stroke: categoryColour(i),
        width: 2,
        paths: stepped,
        points: { show: true, size: 4 },
        value: (_: uPlot, value: number | null) => (value === null ? "–" : format.time(value)),
      })),
      ...searches.map((search, i) => ({
        label: `${nameOf(search, seeds)}, bound`,
        stroke: categoryColour(i),
        width: 1,
        dash: [4, 4],
        paths: stepped,
        points: { show: false },
        value: (_: uPlot, value: number | null) => (value === null ? "–" : format.time(value)),
      })),
    ],
  });
  return (
    <>
      <h3>Best so far, and what is proven (dashed)</h3>
      <Plot store={store} title="Best so far and bound over the time of the search" options={options} data={data} />
    </>
  );
}

function Evaluations({ searches, store }: { searches: Search[]; store: Store }) {
  const [data] = useState(() =>
    together(searches.map((search) => search.points.map(([time, evaluations]): [number, number] => [time, evaluations]))),
  );
  const seeds = new Set(searches.map((search) => search.seed)).size > 1;
  const options = () => ({
    scales: { x: fromZero },
    legend: { show: searches.length <= 12 },
    axes: axes("seconds of search", "evaluations", (value) => `${value}`, format.count),
    series: [
      { label: "seconds", value: (_: uPlot, value: number | null) => (value === null ? "" : value.toFixed(2)) },
      ...searches.map((search, i) => ({
        label: nameOf(search, seeds),
        stroke: categoryColour(i),
        width: 1.5,
        points: { show: true, size: 4 },
        value: (_: uPlot, value: number | null) => (value === null ? "–" : format.count(value)),
      })),
    ],
  });
  return (
    <>
      <h3>Evaluations, where the best or the bound changed</h3>
      <Plot store={store} title="Evaluations over the time of the search" options={options} data={data} />
    </>
  );
}

function Learning({ search, store }: { search: Search; store: Store }) {
  const [data] = useState(
    () =>
      [
        search.rounds.map((round) => round[0]),
        search.rounds.map((round) => round[1] || null),
        search.rounds.map((round) => round[2] || null),
        search.rounds.map((round) => round[3] || null),
      ] as uPlot.AlignedData,
  );
  const line = (label: string, i: number) => ({
    label,
    stroke: categoryColour(i),
    width: 1.5,
    points: { show: false },
    value: (_: uPlot, value: number | null) => (value === null ? "–" : format.time(value)),
  });
  return (
    <>
      <h3>What {search.placer} learned</h3>
      <Plot
        store={store}
        title={`Learning curve of ${search.placer}`}
        options={() => ({
          scales: { x: fromZero, y: { distr: 3 } },
          axes: axes("seconds of search", "step time", (value) => `${value}`),
          series: [
            { label: "seconds", value: (_: uPlot, value: number | null) => (value === null ? "" : value.toFixed(2)) },
            line("best so far", 0),
            line("best of the round", 1),
            line("mean of the round", 2),
          ],
        })}
        data={data}
      />
    </>
  );
}

// Limits of a logarithmic axis with one digit each, so that its marks are round.
function aroundInDigits(low: number, high: number): [number, number] {
  const power = (value: number) => 10 ** Math.floor(Math.log10(value));
  return [Math.floor(low / power(low)) * power(low), Math.ceil(high / power(high)) * power(high)];
}

const timeOf = (answer: Answer) => answer.period_ns ?? answer.step_ns;
const familyOf = (placer: string) => placer.replace(/\(.*/, "");

function Scatter({ runs, store }: { runs: Answer[]; store: Store }) {
  const fitting = runs.filter((run) => run.fits && run.seconds !== undefined);
  const sorted = [...fitting].sort((a, b) => a.seconds! - b.seconds!);
  const seconds = sorted.map((run) => Math.max(run.seconds!, 1e-4));
  const [data] = useState(() => [seconds, sorted.map(timeOf)] as uPlot.AlignedData);
  if (fitting.length < 2) return null;
  const options = () => ({
    scales: {
      x: { time: false, distr: 3 as const },
      y: { distr: 3 as const, range: (_: uPlot, low: number, high: number) => aroundInDigits(low / 1.2, high * 1.2) },
    },
    legend: { show: false },
    cursor: { points: { show: false } },
    axes: axes("seconds of search", "step time", (value) => (Number.isInteger(Math.log10(value)) ? `${value}` : "")),
    series: [
      {},
      {
        stroke: categoryColour(0),
        paths: () => null,
        points: { show: true, size: 8, fill: categoryColour(0) },
      },
    ],
    hooks: {
      draw: [
        (plot: uPlot) => {
          const { ctx } = plot;
          const ratio = window.devicePixelRatio || 1;
          ctx.save();
          ctx.font = `${11 * ratio}px system-ui, sans-serif`;
          ctx.fillStyle = theme().text;
          ctx.textBaseline = "middle";
          ctx.textAlign = "left";
          const { left, width } = plot.bbox;
          const dots = sorted.map((run, i) => [plot.valToPos(seconds[i], "x", true), plot.valToPos(timeOf(run), "y", true)]);
          // What is drawn: from x to x, and the middle.
          const taken = dots.map(([x, y]) => [x - 5 * ratio, x + 5 * ratio, y]);
          // Names where they have room, the fastest first.
          [...sorted.keys()]
            .sort((a, b) => timeOf(sorted[a]) - timeOf(sorted[b]))
            .forEach((i) => {
              const [x, y] = dots[i];
              const name = familyOf(sorted[i].placer!);
              const length = ctx.measureText(name).width;
              for (const begin of [x + 8 * ratio, x - 8 * ratio - length]) {
                const end = begin + length;
                const inside = begin >= left && end <= left + width;
                if (!inside || taken.some(([from, to, at]) => Math.abs(at - y) < 11 * ratio && from < end && to > begin)) continue;
                taken.push([begin, end, y]);
                ctx.fillText(name, begin, y);
                break;
              }
            });
          ctx.restore();
        },
      ],
    },
  });
  return (
    <>
      <h3>Step time against search time</h3>
      <Plot store={store} title="Step time against search time of every run" options={options} data={data} />
    </>
  );
}

function Runs({ runs }: { runs: Answer[] }) {
  const seeds = new Set(runs.map((run) => run.seed)).size > 1;
  const columns: Column<Answer>[] = [
    { name: "placer", value: (run) => run.placer ?? "" },
    { name: "order", value: (run) => run.scheduler ?? "" },
    ...(seeds ? [{ name: "seed", number: true, value: (run: Answer) => run.seed ?? 0 }] : []),
    {
      name: runs[0].period_ns ? "period" : "step time",
      number: true,
      value: (run) => (run.fits ? timeOf(run) : timeOf(run) * 1e6),
      show: (run) => format.time(timeOf(run)),
    },
    {
      name: "of the bound",
      number: true,
      value: (run) => run.gap ?? null,
      show: (run) => (run.gap === null || run.gap === undefined ? "–" : run.optimal ? "optimal" : format.times(1 + run.gap)),
    },
    { name: "fits", value: (run) => (run.fits ? "yes" : "no"), show: (run) => (run.fits ? "yes" : <span class="bad">no</span>) },
    { name: "sent", number: true, value: (run) => run.transfer_bytes ?? 0, show: (run) => format.bytes(run.transfer_bytes ?? 0) },
    { name: "evaluations", number: true, value: (run) => run.evaluations ?? 0, show: (run) => format.count(run.evaluations ?? 0) },
    { name: "search", number: true, value: (run) => run.seconds ?? 0, show: (run) => format.seconds(run.seconds ?? 0) },
  ];
  return <SortedTable rows={runs} columns={columns} first={seeds ? 3 : 2} marked={(run) => run === runs[0]} />;
}

export function Searches({ result, store }: { result: Result; store: Store }) {
  const { searches, comparison, answer } = result.raw;
  const courses = (searches ?? []).filter((search) => search.points.length > 1);
  const learning = (searches ?? []).filter((search) => search.rounds.length > 1);
  if (courses.length === 0 && learning.length === 0 && !comparison) return null;
  const sum = (searches ?? []).reduce((all, search) => all + (search.points[search.points.length - 1]?.[1] ?? 0), 0);
  return (
    <section id="searches">
      <h2>{comparison ? "All that were compared" : "The search"}</h2>
      {comparison && <Runs runs={comparison.runs} />}
      {comparison && <Scatter runs={comparison.runs} store={store} />}
      {courses.length > 0 && (
        <Courses searches={courses} store={store} quantity={answer.period_ns ? "period" : "step time"} />
      )}
      {courses.length > 0 && <Evaluations searches={courses} store={store} />}
      {learning.map((search) => (
        <Learning search={search} store={store} />
      ))}
      {sum > 0 && <p class="hint">{format.count(sum)} {result.raw.partition ? "plans" : "placements"} were evaluated in all.</p>}
    </section>
  );
}
