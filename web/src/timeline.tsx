// The timeline: a row for each device and each channel in use, slices for ops and transfers. What
// is in view is found by bisection; slices of one colour that are narrower than a pixel are drawn
// as one.
import { useMemo, useState } from "preact/hooks";
import { cut, font, marks, onKey, useCanvas, useGestures, type Drawing, type Place } from "./canvas";
import { categoryColour, theme } from "./colours";
import { before, opLine, transferLines, waitLines } from "./explain";
import * as format from "./format";
import { ColourChoice, Legend, Tooltip, ZoomButtons, type TooltipText } from "./parts";
import type { ColourBy, Result, Row } from "./result";
import { useStore, type Store } from "./store";

// The width of the labels, here and in the charts of memory.
export const labelsIn = (width: number) => (width < 700 ? 80 : 132);
const kAxis = 22;
const kDeviceHeight = 26;
const kChannelHeight = 14;
const kGap = 5;

interface PlacedRow {
  row: Row;
  y: number;
  height: number;
}

function placeRows(result: Result, links: boolean): { rows: PlacedRow[]; height: number } {
  const rows: PlacedRow[] = [];
  let y = kAxis + 4;
  let before: Row | null = null;
  for (const row of result.rows) {
    if (row.kind === "channel" && !links) continue;
    if (before && (before.kind !== row.kind || before.measured !== row.measured)) y += 8;
    const height = row.kind === "device" ? kDeviceHeight : kChannelHeight;
    rows.push({ row, y, height });
    y += height + kGap;
    before = row;
  }
  return { rows, height: y + 4 };
}

export function Timeline({ result, store }: { result: Result; store: Store }) {
  const choices = result.colourChoices(false);
  const [by, setBy] = useState<ColourBy>(choices[0]);
  const [chain, setChain] = useState(true);
  const [links, setLinks] = useState(true);
  const [tip, setTip] = useState<TooltipText | null>(null);
  const search = useStore(store, (state) => state.search);
  const matches = useMemo(() => new Set(result.matches(search)), [result, search]);
  const { rows, height } = useMemo(() => placeRows(result, links), [result, links]);
  const colouring = result.colouring(by);
  const painter = new Painter(result, store, rows, by, chain, search.trim() ? matches : null);
  const canvas = useCanvas(store, height, (state) => [state], (drawing) => painter.draw(drawing));

  const timesWidth = (width: number) => Math.max(1, width - labelsIn(width));
  const timeAt = ({ x, width }: Place) => {
    const { from, to } = store.state;
    return from + ((x - labelsIn(width)) / timesWidth(width)) * (to - from);
  };
  const slice = (place: Place) => {
    const { x, y, width } = place;
    const found = rows.find((row) => y >= row.y && y <= row.y + row.height);
    const labels = labelsIn(width);
    if (!found || x < labels) return { row: found?.row ?? null, slice: -1, label: x < labels };
    const { from, to } = store.state;
    const reach = (2 * (to - from)) / timesWidth(width);
    const time = timeAt(place);
    let index = before(found.row, time);
    if (index >= 0 && found.row.end[index] < time - reach) index = -1;
    if (index < 0 && found.row.start[0] <= time + reach) index = found.row.start[0] > time ? 0 : -1;
    return { row: found.row, slice: index, label: false };
  };
  const gestures = useGestures(canvas, {
    begin: () => store.state,
    drag: ({ from, to }, dx, _, { width }) => {
      setTip(null);
      const shift = (-dx / timesWidth(width)) * (to - from);
      store.look(from + shift, to + shift);
    },
    hover: (place) => {
      const { row, slice: index, label } = slice(place);
      if (!row || index < 0) {
        setTip(null);
        return store.hover(row && label && row.kind === "device" ? { type: "device", id: row.index } : null);
      }
      store.hover(itemOf(row, index, result));
      setTip({ x: place.clientX, y: place.clientY, ...textOf(result, row, index) });
    },
    click: (place) => {
      const { row, slice: index, label } = slice(place);
      if (row && index >= 0) store.select(itemOf(row, index, result));
      else store.select(row && label && row.kind === "device" ? { type: "device", id: row.index } : null);
    },
    leave: () => {
      setTip(null);
      store.hover(null);
    },
    zoom: (factor, place) => store.zoom(factor, timeAt(place)),
    pan: (distance, { width }) => store.pan(distance / timesWidth(width)),
  });
  const keys: Record<string, () => void> = {
    ArrowLeft: () => store.pan(-0.15),
    ArrowRight: () => store.pan(0.15),
    "+": () => store.zoom(1.5),
    "=": () => store.zoom(1.5),
    "-": () => store.zoom(1 / 1.5),
    "0": () => store.look(0, store.end),
    n: () => alongChain(result, store, 1),
    p: () => alongChain(result, store, -1),
    Escape: () => store.set({ selected: null }),
  };

  return (
    <section id="timeline" aria-labelledby="timeline-title">
      <h2 id="timeline-title">Timeline</h2>
      <div class="tools">
        <Search result={result} store={store} />
        <ColourChoice choices={choices} by={by} onChange={setBy} />
        {result.raw.chain && (
          <label>
            <input type="checkbox" checked={chain} onChange={() => setChain(!chain)} /> critical chain
          </label>
        )}
        {result.rows.some((row) => row.kind === "channel") && (
          <label>
            <input type="checkbox" checked={links} onChange={() => setLinks(!links)} /> links
          </label>
        )}
        <span class="spacer" />
        <ZoomButtons onZoom={(factor) => store.zoom(factor)} onAll={() => store.look(0, store.end)} all="The whole step" />
      </div>
      <div class="scroll">
        <canvas
          ref={canvas}
          class="drag"
          style={{ height: `${height}px` }}
          tabIndex={0}
          role="application"
          aria-label="Timeline. Arrow keys move, plus and minus zoom, 0 shows all, n and p go along the critical chain."
          {...gestures}
          onKeyDown={(event) => onKey(event, keys)}
        />
      </div>
      <Legend names={colouring.names} used={usedCategories(result, by)} colour={categoryColour} />
      <p class="hint">
        Drag to move, Ctrl + wheel or + and − to zoom, click to select.
        {result.raw.chain && " The line along the rows is the critical chain: what the end of the step waited for. "}
        {result.raw.measured && "Rows marked “measured” are the executed step; those above are its prediction."}
      </p>
      {tip && <Tooltip {...tip} />}
    </section>
  );
}

function usedCategories(result: Result, by: ColourBy): boolean[] {
  const { names, of } = result.colouring(by);
  if (by === "step") return names.map(() => true);
  const used = names.map(() => false);
  for (let op = 0; op < of.length; ++op) if (result.step.length[op] > 0) used[of[op]] = true;
  return used;
}

function itemOf(row: Row, index: number, result: Result) {
  if (row.kind === "device") return { type: "op" as const, id: row.id[index] };
  // Transfers of further steps, and measured ones, are only known by what they carry.
  if (row.measured || result.isStream) return { type: "op" as const, id: result.opOf(row, index) };
  return { type: "transfer" as const, id: row.id[index] };
}

function textOf(result: Result, row: Row, index: number): Omit<TooltipText, "x" | "y"> {
  const op = result.opOf(row, index);
  const span = `${format.time(row.start[index])} + ${format.time(row.end[index] - row.start[index])}`;
  const step = result.isStream ? `, step ${row.step[index] + 1}` : "";
  const title = result.raw.ops!.name[op];
  if (row.kind === "channel") {
    const sent = result.transfersOf(row, index);
    return { title, lines: [`transfer on ${row.label}, ${span}${step}`, ...transferLines(result, sent, row.id[index])] };
  }
  const lines = [opLine(result, op), (row.measured ? "measured " : "") + span + step];
  if (row.measured) lines.push(`predicted ${format.time(result.step.start[op])} + ${format.time(result.step.length[op])}`);
  else if (!result.isStream) lines.push(...waitLines(result, op));
  const real = result.raw.measured;
  if (real && !row.measured) lines.push(`measured ${format.time(real.start[op])} + ${format.time(real.length[op])}`);
  return { title, lines };
}

// To the next op on the critical chain.
function alongChain(result: Result, store: Store, direction: number) {
  const { chain } = result.raw;
  if (!chain) return;
  const ops = chain.op.filter((_, i) => chain.kind[i] === 0);
  const { selected } = store.state;
  const at = selected?.type === "op" ? ops.indexOf(selected.id) : -1;
  const next = at < 0 ? (direction > 0 ? 0 : ops.length - 1) : at + direction;
  if (next < 0 || next >= ops.length) return;
  store.set({ selected: { type: "op", id: ops[next] } });
  store.show(result.step.start[ops[next]], result.step.length[ops[next]]);
}

function Search({ result, store }: { result: Result; store: Store }) {
  const search = useStore(store, (state) => state.search);
  const found = useMemo(() => result.matches(search), [result, search]);
  const [at, setAt] = useState(-1);
  const go = (direction: number) => {
    if (found.length === 0) return;
    const next = (at + direction + found.length) % found.length;
    setAt(next);
    store.set({ selected: { type: "op", id: found[next] } });
    store.show(result.step.start[found[next]], result.step.length[found[next]]);
  };
  return (
    <span class="search">
      <input
        type="search"
        placeholder="Find ops by name"
        aria-label="Find ops by name; Enter goes to the next"
        value={search}
        onInput={(event) => {
          setAt(-1);
          store.set({ search: event.currentTarget.value });
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
        }}
      />
      {search.trim() && (
        <span class="muted" aria-live="polite">
          {at >= 0 ? `${at + 1} of ` : ""}
          {format.count(found.length)}
        </span>
      )}
    </span>
  );
}

class Painter {
  private left = 0; // where the time begins

  constructor(
    readonly result: Result,
    readonly store: Store,
    readonly rows: PlacedRow[],
    readonly by: ColourBy,
    readonly chain: boolean,
    readonly matches: Set<number> | null,
  ) {}

  draw({ context, width, height }: Drawing) {
    const colours = theme();
    const { from, to, selected, hovered } = this.store.state;
    this.left = labelsIn(width);
    const scale = (width - this.left) / (to - from);
    const x = (time: number) => this.left + (time - from) * scale;
    this.axis(context, width, height, x, colours);
    context.save();
    context.beginPath();
    context.rect(this.left, 0, width - this.left, height);
    context.clip();
    // While something is looked for, the rest steps back; likewise beside a module.
    const focus = selected?.type === "module" ? selected : null;
    const wanted = this.matches ?? (focus ? this.opsOf(focus.path) : null);
    for (const placed of this.rows) this.row(context, placed, x, scale, wanted);
    if (this.chain && this.result.raw.chain) this.drawChain(context, x, colours.text);
    this.outline(context, x, selected, colours.text, 2);
    this.outline(context, x, hovered, colours.accent, 2);
    context.restore();
    this.labels(context, colours, selected, hovered);
  }

  private opsOf(path: string): Set<number> {
    const item = { type: "module" as const, path };
    const found = new Set<number>();
    for (let op = 0; op < this.result.numOps; ++op) if (this.result.concerns(item, op)) found.add(op);
    return found;
  }

  private axis(
    context: CanvasRenderingContext2D,
    width: number,
    height: number,
    x: (time: number) => number,
    colours: ReturnType<typeof theme>,
  ) {
    const { from, to } = this.store.state;
    context.font = font(11);
    context.textBaseline = "middle";
    context.textAlign = "center";
    context.lineWidth = 1;
    for (const mark of marks(from, to, (width - this.left) / 110)) {
      const at = Math.round(x(mark)) + 0.5;
      context.strokeStyle = colours.faint;
      context.beginPath();
      context.moveTo(at, kAxis);
      context.lineTo(at, height);
      context.stroke();
      context.fillStyle = colours.muted;
      if (at > this.left + 24 && at < width - 24) context.fillText(axisTime(mark, to - from), at, kAxis / 2);
    }
  }

  private labels(
    context: CanvasRenderingContext2D,
    colours: ReturnType<typeof theme>,
    selected: Store["state"]["selected"],
    hovered: Store["state"]["hovered"],
  ) {
    context.textAlign = "left";
    context.textBaseline = "middle";
    for (const { row, y, height } of this.rows) {
      const device = row.kind === "device";
      const marked = [selected, hovered].some((item) => device && item?.type === "device" && item.id === row.index);
      context.font = font(device ? 12.5 : 10.5, marked ? 700 : 400);
      context.fillStyle = device ? colours.text : colours.muted;
      const label = row.label.replace("->", "→") + (row.measured ? ", measured" : "");
      context.fillText(cut(context, label, this.left - 12), 2, y + height / 2);
    }
  }

  private row(
    context: CanvasRenderingContext2D,
    { row, y, height }: PlacedRow,
    x: (time: number) => number,
    scale: number,
    wanted: Set<number> | null,
  ) {
    const { from, to } = this.store.state;
    const { of } = this.result.colouring(this.by);
    let run = -1;
    let begin = 0;
    let end = 0;
    const fill = () => {
      if (run < 0) return;
      context.globalAlpha = run & 1 ? 0.16 : 1;
      context.fillStyle = categoryColour(run >> 1);
      context.fillRect(begin, y, Math.max(end - begin, 0.6), height);
    };
    for (let i = Math.max(0, firstInView(row, from)); i < row.start.length && row.start[i] <= to; ++i) {
      const left = x(row.start[i]);
      const right = x(row.end[i]);
      const op = this.result.opOf(row, i);
      const category = this.by === "step" ? row.step[i] : of[op];
      const key = (category << 1) | (wanted !== null && !wanted.has(op) ? 1 : 0);
      const gap = right - left > 3 ? 0.5 : 0;
      if (key === run && left <= end + 0.4 && right - begin < 4096 && gap === 0) {
        end = Math.max(end, right);
        continue;
      }
      fill();
      run = key;
      begin = left;
      end = right - gap;
    }
    fill();
    context.globalAlpha = 1;
    if (row.kind === "device" && (to - from) * scale > 0) this.names(context, row, y, height, x);
  }

  // Where there is room, what a slice is.
  private names(
    context: CanvasRenderingContext2D,
    row: Row,
    y: number,
    height: number,
    x: (time: number) => number,
  ) {
    const { from, to } = this.store.state;
    const { ops } = this.result.raw;
    context.font = font(11);
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillStyle = "#fff";
    let drawn = 0;
    for (let i = Math.max(0, firstInView(row, from)); i < row.start.length && row.start[i] <= to && drawn < 400; ++i) {
      const left = Math.max(x(row.start[i]), this.left);
      const room = x(row.end[i]) - left - 8;
      if (room < 28) continue;
      // Measuring hundreds of texts takes longer than all the rest: letters are taken to be as wide as most are.
      const text = room > 90 ? ops!.name[row.id[i]] : ops!.types[ops!.type[row.id[i]]];
      const fitting = Math.floor(room / 7);
      context.fillText(text.length > fitting ? text.slice(0, fitting - 1) + "…" : text, left + 4, y + height / 2 + 0.5);
      ++drawn;
    }
  }

  private y(kind: Row["kind"], index: number): PlacedRow | undefined {
    return this.rows.find((placed) => placed.row.kind === kind && placed.row.index === index && !placed.row.measured);
  }

  // Along what computes or is sent, with dashes where the chain waits, and from row to row.
  private drawChain(context: CanvasRenderingContext2D, x: (time: number) => number, colour: string) {
    const chain = this.result.raw.chain!;
    const { ops } = this.result.raw;
    const { from, to } = this.store.state;
    context.strokeStyle = colour;
    context.globalAlpha = 0.85;
    let last: { x: number; y: number } | null = null;
    let drawn = -Infinity; // where the last line between rows is; closer ones would only blacken
    for (let i = 0; i < chain.kind.length; ++i) {
      const begin = chain.start[i];
      const end = begin + chain.length[i];
      if (end < from || begin > to) {
        last = null;
        continue;
      }
      const onDevice = chain.kind[i] === 0 || chain.kind[i] === 2;
      const placed = onDevice
        ? this.y("device", ops!.device[chain.op[i]])
        : this.y("channel", this.result.transfers.channel[chain.transfer[i]]);
      if (!placed) {
        last = null;
        continue;
      }
      const waits = chain.kind[i] >= 2;
      const middle = placed.y + placed.height + 1.5;
      context.lineWidth = waits ? 1.5 : 3;
      context.setLineDash(waits ? [3, 3] : []);
      context.beginPath();
      context.moveTo(x(begin), middle);
      context.lineTo(Math.max(x(end), x(begin) + 0.5), middle);
      context.stroke();
      if (last && Math.abs(last.y - middle) > 1 && x(begin) - drawn > 4) {
        drawn = x(begin);
        context.setLineDash([]);
        context.lineWidth = 1;
        context.globalAlpha = 0.4;
        context.beginPath();
        context.moveTo(last.x, last.y);
        context.lineTo(x(begin), middle);
        context.stroke();
        context.globalAlpha = 0.85;
      }
      last = { x: x(end), y: middle };
    }
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  private outline(
    context: CanvasRenderingContext2D,
    x: (time: number) => number,
    item: Store["state"]["selected"],
    colour: string,
    line: number,
  ) {
    if (!item || item.type === "module" || item.type === "device") return;
    context.strokeStyle = colour;
    context.lineWidth = line;
    const box = (placed: PlacedRow | undefined, start: number, length: number) => {
      if (!placed) return;
      const left = x(start);
      context.strokeRect(left - 1, placed.y - 1, Math.max(x(start + length) - left, 1) + 2, placed.height + 2);
    };
    const { ops, readers } = this.result.raw;
    const { step, transfers } = this.result;
    const boxOp = (op: number) => box(this.y("device", ops!.device[op]), step.start[op], step.length[op]);
    if (item.type === "op") return boxOp(item.id);
    box(this.y("channel", transfers.channel[item.id]), transfers.start[item.id], transfers.length[item.id]);
    boxOp(transfers.op[item.id]);
    for (const reader of (readers?.[item.id] ?? []).slice(0, 50)) boxOp(reader);
  }
}

function firstInView(row: Row, from: number): number {
  let low = 0;
  let high = row.end.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row.end[middle] < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

// As precise as the marks are apart.
export function axisTime(time: number, span: number): string {
  const [unit, name] = span >= 2e9 ? [1e9, "s"] : span >= 2e6 ? [1e6, "ms"] : span >= 2e3 ? [1e3, "µs"] : [1, "ns"];
  const digits = Math.max(0, Math.ceil(-Math.log10(span / 8 / unit)));
  return `${(time / unit).toFixed(Math.min(digits, 6))} ${name}`;
}
