// Draws the timeline. What is in view is found by bisection; slices of one colour that are narrower
// than a pixel are drawn as one.
import { cut, font, timeGrid, type Drawing } from "./canvas";
import { categoryColour, theme, type Theme } from "./colours";
import * as format from "./format";
import type { ColourBy, Result, Row } from "./result";
import { aside, type Store } from "./store";

// The width of the labels, here and in the charts of memory.
export const labelsIn = (width: number) => (width < 700 ? 80 : 132);
const kAxis = 22;
const kDeviceHeight = 26;
const kChannelHeight = 14;
const kStepHeight = 13;
const kGap = 5;
const kPeriod = 16; // the line above steps that says what the period is

export interface PlacedRow {
  row: Row;
  y: number;
  height: number;
}

export function placeRows(result: Result, links: boolean): { rows: PlacedRow[]; height: number } {
  const rows: PlacedRow[] = [];
  let y = kAxis + 4;
  let before: Row | null = null;
  if (result.isStream) y += kPeriod;
  for (const row of result.rows) {
    if (row.kind === "channel" && !links) continue;
    if (before && (before.kind !== row.kind || before.measured !== row.measured)) y += 8;
    const most = row.kind === "device" ? kDeviceHeight : row.kind === "channel" ? kChannelHeight : kStepHeight;
    const height = Math.min(most, Math.max(3, Math.floor(96 / row.lanes)));
    rows.push({ row, y, height });
    y += height + (row.kind === "step" || row.lane + 1 < row.lanes ? 1 : kGap);
    before = row;
  }
  return { rows, height: y + 4 };
}

// Whether a slice is what is looked for; null: nothing is.
type Wanted = ((row: Row, slice: number) => boolean) | null;

export class Painter {
  private left = 0; // where the time begins

  constructor(
    readonly result: Result,
    readonly store: Store,
    readonly rows: PlacedRow[],
    readonly by: ColourBy,
    readonly chain: boolean,
  ) {}

  draw(drawing: Drawing) {
    const { context, width, height } = drawing;
    const colours = theme();
    const { from, to, selected, hovered } = this.store.state;
    this.left = labelsIn(width);
    const scale = (width - this.left) / (to - from);
    const x = (time: number) => this.left + (time - from) * scale;
    timeGrid(drawing, colours, { from, to, left: this.left }, kAxis);
    context.save();
    context.beginPath();
    context.rect(this.left, 0, width - this.left, height);
    context.clip();
    if (this.result.isStream) this.drawStream(drawing, x, colours);
    const wanted = this.wanted();
    for (const placed of this.rows) this.row(context, placed, x, scale, wanted, colours);
    if (this.chain && this.result.raw.chain) this.drawChain(context, x, colours.text);
    this.outline(context, x, selected, colours.text, 2);
    this.outline(context, x, hovered, colours.accent, 2);
    context.restore();
    this.labels(context, colours, selected, hovered);
  }

  // Transfers are those that a device sends or is sent, or of what is made by a wanted op.
  private wanted(): Wanted {
    const { result } = this;
    const { state } = this.store;
    const concerns = result.focus(state);
    if (!concerns) return null;
    const item = aside(state);
    const device = item?.type === "device" && !state.search.trim() ? item.id : -1;
    return (row, i) => {
      if (row.kind !== "channel" || device < 0) return concerns(result.opOf(row, i), row.step[i]);
      const { from, to } = result.transfersOf(row, i);
      return from[row.id[i]] === device || to[row.id[i]] === device;
    };
  }

  // While the first step is on its way the pipeline fills; then a step ends every period.
  private drawStream({ context, height }: Drawing, x: (time: number) => number, colours: Theme) {
    const { finished } = this.result.raw.stream!;
    const { time: period, end } = this.result;
    const top = kAxis + 4;
    const full = finished[0];
    context.fillStyle = colours.faint;
    context.globalAlpha = 0.55;
    context.fillRect(x(0), kAxis, x(full) - x(0), height - kAxis);
    context.globalAlpha = 1;
    context.strokeStyle = colours.muted;
    context.lineWidth = 1;
    context.setLineDash([2, 3]);
    for (const finish of finished) {
      if (finish > end) continue;
      context.beginPath();
      context.moveTo(Math.round(x(finish)) + 0.5, top + kPeriod - 4);
      context.lineTo(Math.round(x(finish)) + 0.5, height);
      context.stroke();
    }
    context.setLineDash([]);
    context.font = font(10.5);
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillStyle = colours.muted;
    const middle = top + kPeriod / 2 - 2;
    const begin = Math.max(x(0), this.left);
    const filling = cut(context, this.result.hasStages ? "filling, until the first step ends" : "the first step", x(full) - begin - 10);
    context.fillText(filling, begin + 4, middle);
    if (full + period > end) return;
    // One period, from the end of the first step on.
    const [left, right] = [x(full), x(full + period)];
    context.strokeStyle = context.fillStyle = colours.text;
    context.beginPath();
    for (const at of [left, right]) {
      context.moveTo(at, middle - 4);
      context.lineTo(at, middle + 4);
    }
    context.moveTo(left, middle);
    context.lineTo(right, middle);
    context.stroke();
    context.fillText(`period ${format.time(period)}`, right + 5, middle);
  }

  private labels(
    context: CanvasRenderingContext2D,
    colours: Theme,
    selected: Store["state"]["selected"],
    hovered: Store["state"]["hovered"],
  ) {
    context.textAlign = "left";
    context.textBaseline = "middle";
    for (const { row, y, height } of this.rows) {
      if (row.kind === "step" || row.lane > 0) continue;
      const device = row.kind === "device";
      const marked = [selected, hovered].some((item) => device && item?.type === "device" && item.id === row.index);
      context.font = font(device ? 12.5 : 10.5, marked ? 700 : 400);
      context.fillStyle = device ? colours.text : colours.muted;
      const label = row.label.replace("->", "→") + (row.measured ? ", measured" : "");
      const stage = device && this.result.hasStages ? this.result.raw.stream!.stages.indexOf(row.index) : -1;
      context.fillText(cut(context, label, this.left - 12), 2, y + height / 2 - (stage < 0 ? 0 : 6));
      if (stage < 0) continue;
      context.font = font(10.5);
      context.fillStyle = colours.muted;
      context.fillText(`stage ${stage + 1}`, 2, y + height / 2 + 7);
    }
    const lines = this.rows.filter(({ row }) => row.kind === "step");
    if (lines.length === 0) return;
    const last = lines[lines.length - 1];
    context.font = font(10.5);
    context.fillStyle = colours.muted;
    const all = this.result.raw.answer.stream!.in_flight!;
    const label = `${lines.length < all ? lines.length + " of " : ""}${format.counted(all, "step")} in flight`;
    context.fillText(cut(context, label, this.left - 12), 2, (lines[0].y + last.y + last.height) / 2);
  }

  private row(
    context: CanvasRenderingContext2D,
    { row, y, height }: PlacedRow,
    x: (time: number) => number,
    scale: number,
    wanted: Wanted,
    colours: Theme,
  ) {
    const { from, to } = this.store.state;
    const { of } = this.result.colouring(this.by);
    const phase = this.result.raw.ops!.phase;
    const steps = row.kind === "step";
    let run = -1;
    let begin = 0;
    let end = 0;
    const fill = () => {
      if (run < 0) return;
      context.globalAlpha = run & 1 ? 0.16 : run & 2 ? 0.62 : 1;
      context.fillStyle = steps && this.by !== "step" ? colours.muted : categoryColour(run >> 2);
      context.fillRect(begin, y, Math.max(end - begin, 0.6), height);
    };
    for (let i = Math.max(0, firstInView(row, from)); i < row.start.length && row.start[i] <= to; ++i) {
      const left = x(row.start[i]);
      const right = x(row.end[i]);
      const op = this.result.opOf(row, i);
      const category = steps || this.by === "step" ? row.step[i] : of[op];
      // Of a step, what is not its forward pass is paler.
      const pale = !steps && this.by === "step" && phase[op] > 0;
      const key = (category << 2) | (pale ? 2 : 0) | (wanted && !wanted(row, i) ? 1 : 0);
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
    if (row.kind === "channel" || (to - from) * scale <= 0) return;
    const plain = (i: number) => wanted === null || wanted(row, i);
    if (!steps) this.names(context, row, y, height, x, plain);
    if (steps ? height >= 9 : this.by === "step") this.numbers(context, row, y, height, x, plain);
  }

  // Where there is room, what a slice is.
  private names(
    context: CanvasRenderingContext2D,
    row: Row,
    y: number,
    height: number,
    x: (time: number) => number,
    plain: (i: number) => boolean,
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
      if (room < 28 || !plain(i)) continue;
      // Measuring hundreds of texts takes longer than all the rest: letters are taken to be as wide as most are.
      const step = this.by === "step" ? `${row.step[i] + 1} ` : "";
      const text = step + (room > 90 ? ops!.name[row.id[i]] : ops!.types[ops!.type[row.id[i]]]);
      const fitting = Math.floor(room / 7);
      context.fillText(text.length > fitting ? text.slice(0, fitting - 1) + "…" : text, left + 4, y + height / 2 + 0.5);
      ++drawn;
    }
  }

  // The numbers of steps on what is drawn as one: ops of a step that follow each other.
  private numbers(
    context: CanvasRenderingContext2D,
    row: Row,
    y: number,
    height: number,
    x: (time: number) => number,
    plain: (i: number) => boolean,
  ) {
    const { from, to } = this.store.state;
    context.font = font(row.kind === "step" ? 9.5 : 11, 600);
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = "#fff";
    const right = x(to);
    let begin = 0;
    let end = -1;
    let step = -1;
    const write = () => {
      const [l, r] = [Math.max(begin, this.left), Math.min(end, right)];
      const text = row.kind === "step" && r - l > 60 ? `step ${step + 1}` : `${step + 1}`;
      if (step >= 0 && r - l >= 8 + 7 * text.length) context.fillText(text, (l + r) / 2, y + height / 2 + 0.5);
    };
    for (let i = Math.max(0, firstInView(row, from)); i < row.start.length && row.start[i] <= to; ++i) {
      const [l, r] = [x(row.start[i]), x(row.end[i])];
      const named = row.kind === "device" && r - Math.max(l, this.left) >= 36; // by names()
      const number = named || !plain(i) ? -1 : row.step[i];
      if (number !== step || l > end + 2) {
        write();
        begin = l;
        step = number;
      }
      end = r;
    }
    write();
  }

  private y(kind: Row["kind"], index: number, lane = 0): PlacedRow | undefined {
    return this.rows.find(({ row }) => row.kind === kind && row.index === index && row.lane === lane && !row.measured);
  }

  private yOfTransfer(id: number): PlacedRow | undefined {
    return this.y("channel", this.result.transfers.channel[id], this.result.laneOf[id]);
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
        : this.yOfTransfer(chain.transfer[i]);
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
    if (item.type === "step") {
      const { entered, finished } = this.result.raw.stream!;
      const line = this.rows.find(({ row }) => row.kind === "step" && row.id.includes(item.id));
      return box(line, entered[item.id], finished[item.id] - entered[item.id]);
    }
    const { ops, readers, steps } = this.result.raw;
    const { step, transfers } = this.result;
    const boxOp = (op: number, { start, length } = step) => box(this.y("device", ops!.device[op]), start[op], length[op]);
    if (item.type === "op") {
      // In every step of a stream, and the one that is meant once more.
      context.lineWidth = item.step === undefined ? line : line / 2;
      steps!.forEach((one) => boxOp(item.id, one));
      context.lineWidth = line;
      if (item.step !== undefined) boxOp(item.id, steps![item.step]);
      return;
    }
    box(this.yOfTransfer(item.id), transfers.start[item.id], transfers.length[item.id]);
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
