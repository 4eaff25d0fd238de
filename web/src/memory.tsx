// Memory over time: what each device holds, stacked by what holds it, under the same part of the
// time as the timeline; and what is largest at the peak.
import { useState } from "preact/hooks";
import { cut, font, timeGrid, useCanvas, type Drawing } from "./canvas";
import { theme, useColours } from "./colours";
import { deviceRow } from "./explain";
import * as format from "./format";
import { Legend, Tooltip, type TooltipText } from "./parts";
import type { Result } from "./result";
import { aside, useStore, type Item, type Store } from "./store";
import { labelsIn } from "./timeline_painter";
import type { MemoryOfDevice } from "./types";

const kHeight = 78;
const kAxis = 16; // above the first chart

export function Memory({ result, store }: { result: Result; store: Store }) {
  const { memory } = result.raw;
  const selected = useStore(store, (state) => state.selected);
  const fullest = memory!.devices.reduce((best, device, i) => (device.peak > memory!.devices[best].peak ? i : best), 0);
  const [chosen, setChosen] = useState(fullest);
  const shown = selected?.type === "device" ? selected.id : chosen;
  const highest = Math.max(...memory!.devices.map((device) => device.peak), 1);
  const used = memory!.uses.map((_, use) => memory!.devices.some((device) => device.held[use].some((bytes) => bytes > 0)));
  return (
    <section id="memory">
      <h2>Memory over time</h2>
      {result.isStream && <StreamMemory result={result} />}
      {result.deviceOrder.map((id, i) => (
        <Chart result={result} store={store} id={id} first={i === 0} highest={highest} onChoose={() => setChosen(id)} />
      ))}
      <Legend names={memory!.uses} used={used} colour={(i) => useColours[i]} />
      <Largest result={result} store={store} id={shown} />
    </section>
  );
}

function at(device: MemoryOfDevice, time: number): number {
  let low = 0;
  let high = device.time.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (device.time[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

// Peaks are those of the time that is shown; later ones can only be named.
function StreamMemory({ result }: { result: Result }) {
  const { memory, answer, cluster } = result.raw;
  const later = memory!.devices.flatMap((device, id) => {
    const all = answer.devices?.find((other) => other.name === cluster!.devices[id].name)?.peak_bytes ?? device.peak;
    return all > device.peak ? [`${cluster!.devices[id].name} (${format.bytes(all)})`] : [];
  });
  return (
    <p class="muted">
      What lasts is there once, everything else once for each step in flight.
      {later.length > 0 && ` Later the peak is higher on ${format.joined(later)}.`}
    </p>
  );
}

interface ChartProps {
  result: Result;
  store: Store;
  id: number;
  first: boolean; // has the times above it
  highest: number;
  onChoose: () => void;
}

function Chart({ result, store, id, first, highest, onChoose }: ChartProps) {
  const device = result.raw.memory!.devices[id];
  const { name, memory: capacity } = result.raw.cluster!.devices[id];
  const [tip, setTip] = useState<TooltipText | null>(null);
  const height = kHeight + (first ? kAxis : 0);
  const canvas = useCanvas(store, height, (state) => [state], (drawing) =>
    draw(drawing, store, device, name, capacity, highest, id, first, result),
  );
  const move = (event: PointerEvent) => {
    const bounds = canvas.current!.getBoundingClientRect();
    const { from, to } = store.state;
    const labels = labelsIn(bounds.width);
    const part = (event.clientX - bounds.left - labels) / Math.max(1, bounds.width - labels);
    store.hover({ type: "device", id });
    if (part < 0) return setTip(null);
    const time = from + part * (to - from);
    const index = at(device, time);
    const held = device.held.map((column) => column[index]);
    const uses = result.raw.memory!.uses;
    setTip({
      x: event.clientX,
      y: event.clientY,
      title: `${name} at ${format.time(device.time[index])}: ${format.bytes(held.reduce((a, b) => a + b, 0))}`,
      lines: held.map((bytes, use) => (bytes > 0 ? `${uses[use]} ${format.bytes(bytes)}` : "")).filter(Boolean),
    });
  };
  return (
    <>
      <canvas
        ref={canvas}
        style={{ height: `${height}px` }}
        role="img"
        aria-label={`Memory of ${name} over the step; at most ${format.bytes(device.peak)} at ${format.time(device.peak_time)}`}
        onPointerMove={move}
        onPointerLeave={() => {
          setTip(null);
          store.hover(null);
        }}
        onClick={() => {
          onChoose();
          store.set({ selected: null });
        }}
      />
      {tip && <Tooltip {...tip} />}
    </>
  );
}

function draw(
  drawing: Drawing,
  store: Store,
  device: MemoryOfDevice,
  name: string,
  capacity: number | null,
  highest: number,
  id: number,
  first: boolean,
  result: Result,
) {
  const { context, width, height } = drawing;
  const colours = theme();
  const { from, to, selected, hovered } = store.state;
  const labels = labelsIn(width);
  const top = 16 + (first ? kAxis : 0);
  const bottom = height - 4;
  const limit = capacity !== null && capacity < 1.6 * highest ? Math.max(capacity, highest) : highest;
  const x = (time: number) => labels + ((time - from) / (to - from)) * (width - labels);
  const y = (bytes: number) => bottom - (bytes / limit) * (bottom - top);
  timeGrid(drawing, colours, { from, to, left: labels }, first ? kAxis : 0);
  context.save();
  context.beginPath();
  context.rect(labels, 0, width - labels, height);
  context.clip();
  const beside = aside(store.state);
  context.globalAlpha = beside?.type === "device" && beside.id !== id ? 0.25 : 1;
  const start = at(device, from);
  const base = new Float64Array(device.time.length);
  device.held.forEach((column, use) => {
    context.fillStyle = useColours[use];
    context.beginPath();
    let last = start;
    const points: [number, number, number][] = [];
    for (let i = start; i < device.time.length && (i === start || device.time[i] <= to); ++i) {
      const right = i + 1 < device.time.length ? device.time[i + 1] : store.end;
      points.push([x(device.time[i]), x(right), i]);
      last = i;
    }
    points.forEach(([left, right, i]) => {
      context.lineTo(left, y(base[i] + column[i]));
      context.lineTo(right, y(base[i] + column[i]));
    });
    points.reverse().forEach(([left, right, i]) => {
      context.lineTo(right, y(base[i]));
      context.lineTo(left, y(base[i]));
    });
    context.fill();
    for (let i = start; i <= last; ++i) base[i] += column[i];
  });
  context.strokeStyle = colours.line;
  context.beginPath();
  context.moveTo(labels, bottom + 0.5);
  context.lineTo(width, bottom + 0.5);
  context.stroke();
  if (capacity !== null && capacity <= limit) {
    context.strokeStyle = colours.text;
    context.setLineDash([4, 4]);
    context.beginPath();
    context.moveTo(labels, y(capacity));
    context.lineTo(width, y(capacity));
    context.stroke();
    context.setLineDash([]);
  }
  if (device.peak > 0) markPeak(context, x(device.peak_time), y(device.peak), device, width, colours.text);
  context.globalAlpha = 1;
  for (const [item, colour] of [[selected, colours.text], [hovered, colours.accent]] as const) {
    if (!item || item.type === "device") continue;
    context.strokeStyle = colour;
    for (const [begin, end] of spans(result, id, item, (to - from) / width)) {
      context.strokeRect(x(begin), top - 4, Math.max(1, x(end) - x(begin)), bottom - top + 4);
    }
  }
  context.restore();
  const marked = [selected, hovered].some((item) => item?.type === "device" && item.id === id);
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.font = font(12.5, marked ? 700 : 400);
  context.fillStyle = colours.text;
  context.fillText(cut(context, name, labels - 12), 2, (top + bottom) / 2 - 7);
  context.font = font(11);
  context.fillStyle = colours.muted;
  context.fillText(`of ${format.bytes(capacity)}`, 2, (top + bottom) / 2 + 9);
}

// When the device runs what is meant, as one where no gap would be seen.
function spans(result: Result, device: number, item: Item, gap: number): [number, number][] {
  const { start, end, id, step } = deviceRow(result, device);
  const concerns = result.concerns(item);
  const found: [number, number][] = [];
  start.forEach((begin, i) => {
    if (!concerns(id[i], step[i])) return;
    const last = found[found.length - 1];
    if (last && begin - last[1] <= gap) last[1] = end[i];
    else found.push([begin, end[i]]);
  });
  return found;
}

function markPeak(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  device: MemoryOfDevice,
  width: number,
  colour: string,
) {
  context.fillStyle = colour;
  context.beginPath();
  context.arc(x, y, 3, 0, 2 * Math.PI);
  context.fill();
  context.font = font(11, 600);
  context.textBaseline = "bottom";
  const text = `peak ${format.bytes(device.peak)}`;
  const room = context.measureText(text).width + 8;
  context.textAlign = x + room > width ? "right" : "left";
  context.fillText(text, x + (x + room > width ? -6 : 6), y - 1);
}

// Weights and optimizer state.
const stays = (use: number) => use < 2;

function Largest({ result, store, id }: { result: Result; store: Store; id: number }) {
  const { memory, cluster, ops } = result.raw;
  const device = memory!.devices[id];
  if (!device || device.largest.length === 0) return null;
  return (
    <>
      <h3>
        The largest of what {cluster!.devices[id].name} holds at its peak, {format.time(device.peak_time)}
      </h3>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>made by</th>
              <th>module</th>
              <th>what it is</th>
              {result.isStream && <th class="number">of step</th>}
              <th class="number">size</th>
              <th class="number">from</th>
              <th class="number">until</th>
            </tr>
          </thead>
          <tbody>
            {device.largest.map((holder) => (
              <tr onMouseEnter={() => store.hover({ type: "op", id: holder.op })} onMouseLeave={() => store.hover(null)}>
                <td>
                  <button class="text" onClick={() => store.select({ type: "op", id: holder.op })}>
                    {ops!.name[holder.op]}
                  </button>
                </td>
                <td>{result.moduleOf(holder.op)}</td>
                <td>{memory!.uses[holder.use]}</td>
                {result.isStream && <td class="number">{stays(holder.use) ? "all" : (holder.step ?? 0) + 1}</td>}
                <td class="number">{format.bytes(holder.bytes)}</td>
                <td class="number">{format.time(holder.begin)}</td>
                <td class="number">{result.isStream && stays(holder.use) ? "the end" : format.time(holder.end)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
