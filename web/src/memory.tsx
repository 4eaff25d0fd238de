// Memory over time: what each device holds, stacked by what holds it, under the same part of the
// time as the timeline; and what is largest at the peak.
import { useState } from "preact/hooks";
import { cut, font, marks, useCanvas, type Drawing } from "./canvas";
import { theme, useColours } from "./colours";
import * as format from "./format";
import { Legend, Tooltip, type TooltipText } from "./parts";
import type { Result } from "./result";
import { useStore, type Store } from "./store";
import { axisTime, labelsIn } from "./timeline";
import type { MemoryOfDevice } from "./types";

const kHeight = 78;
const kAxis = 16; // above the first chart

export function Memory({ result, store }: { result: Result; store: Store }) {
  const { memory, cluster } = result.raw;
  const selected = useStore(store, (state) => state.selected);
  const fullest = memory!.devices.reduce((best, device, i) => (device.peak > memory!.devices[best].peak ? i : best), 0);
  const [chosen, setChosen] = useState(fullest);
  const shown = selected?.type === "device" ? selected.id : chosen;
  const highest = Math.max(...memory!.devices.map((device) => device.peak), 1);
  const used = memory!.uses.map((_, use) => memory!.devices.some((device) => device.held[use].some((bytes) => bytes > 0)));
  return (
    <section id="memory">
      <h2>Memory over time</h2>
      {cluster!.devices.map((_, id) => (
        <Chart result={result} store={store} id={id} highest={highest} onChoose={() => setChosen(id)} />
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

function Chart(props: { result: Result; store: Store; id: number; highest: number; onChoose: () => void }) {
  const { result, store, id, highest, onChoose } = props;
  const device = result.raw.memory!.devices[id];
  const { name, memory: capacity } = result.raw.cluster!.devices[id];
  const [tip, setTip] = useState<TooltipText | null>(null);
  const height = kHeight + (id === 0 ? kAxis : 0);
  const canvas = useCanvas(store, height, (state) => [state], (drawing) =>
    draw(drawing, store, device, name, capacity, highest, id, result),
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
  { context, width, height }: Drawing,
  store: Store,
  device: MemoryOfDevice,
  name: string,
  capacity: number | null,
  highest: number,
  id: number,
  result: Result,
) {
  const colours = theme();
  const { from, to, selected, hovered } = store.state;
  const labels = labelsIn(width);
  const top = 16 + (id === 0 ? kAxis : 0);
  const bottom = height - 4;
  const limit = capacity !== null && capacity < 1.6 * highest ? Math.max(capacity, highest) : highest;
  const x = (time: number) => labels + ((time - from) / (to - from)) * (width - labels);
  const y = (bytes: number) => bottom - (bytes / limit) * (bottom - top);
  grid(context, x, from, to, width, height, id === 0, colours);
  context.save();
  context.beginPath();
  context.rect(labels, 0, width - labels, height);
  context.clip();
  const first = at(device, from);
  const base = new Float64Array(device.time.length);
  device.held.forEach((column, use) => {
    context.fillStyle = useColours[use];
    context.beginPath();
    let last = first;
    const points: [number, number, number][] = [];
    for (let i = first; i < device.time.length && (i === first || device.time[i] <= to); ++i) {
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
    for (let i = first; i <= last; ++i) base[i] += column[i];
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
  for (const [item, colour] of [[selected, colours.text], [hovered, colours.accent]] as const) {
    if (item?.type !== "op" || result.raw.ops!.device[item.id] !== id) continue;
    context.strokeStyle = colour;
    context.strokeRect(x(result.step.start[item.id]), top - 4, Math.max(1, x(result.step.start[item.id] + result.step.length[item.id]) - x(result.step.start[item.id])), bottom - top + 4);
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

// The same marks as the timeline's, with times above the first chart.
function grid(
  context: CanvasRenderingContext2D,
  x: (time: number) => number,
  from: number,
  to: number,
  width: number,
  height: number,
  labelled: boolean,
  colours: ReturnType<typeof theme>,
) {
  context.font = font(11);
  context.textAlign = "center";
  context.textBaseline = "top";
  const labels = labelsIn(width);
  for (const mark of marks(from, to, (width - labels) / 110)) {
    const at = Math.round(x(mark)) + 0.5;
    context.strokeStyle = colours.faint;
    context.beginPath();
    context.moveTo(at, labelled ? 14 : 0);
    context.lineTo(at, height);
    context.stroke();
    context.fillStyle = colours.muted;
    if (labelled && at > labels + 24 && at < width - 24) context.fillText(axisTime(mark, to - from), at, 0);
  }
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
                <td class="number">{format.bytes(holder.bytes)}</td>
                <td class="number">{format.time(holder.begin)}</td>
                <td class="number">{format.time(holder.end)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
