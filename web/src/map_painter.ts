// Draws the map. Lines are tensors that go from one device to another, wider for more bytes.
import { cut, font, type Drawing } from "./canvas";
import { categoryColour, theme } from "./colours";
import { isOpen, kPale, type Flow, type Layout, type View } from "./map_layout";
import type { Item, Store } from "./store";

const kLines = 160;
export const kReach = 5; // how near to a line the pointer has to be, in pixels

export class MapPainter {
  private readonly map;
  private readonly colours = theme();

  constructor(
    readonly layout: Layout,
    readonly flows: Flow[],
    readonly store: Store,
    readonly view: View,
    readonly lines: boolean,
  ) {
    this.map = layout.result.raw.map!;
  }

  draw({ context, width, height }: Drawing) {
    this.layout.stepBackBeside(this.layout.result.focus(this.store.state));
    this.box(context, 0, width, height);
    this.layout.lines = [];
    if (this.lines) this.drawFlows(context, width, height);
    const { selected, hovered } = this.store.state;
    this.outline(context, selected, this.colours.text);
    this.outline(context, hovered, this.colours.accent);
    if (selected?.type === "op") this.neighbours(context, selected.id);
  }

  private x = (value: number) => this.view.x + value * this.view.scale;
  private y = (value: number) => this.view.y + value * this.view.scale;

  private box(context: CanvasRenderingContext2D, box: number, width: number, height: number) {
    const { map, view } = this;
    const [x, y] = [this.x(map.x[box]), this.y(map.y[box])];
    const [w, h] = [map.width[box] * view.scale, map.height[box] * view.scale];
    if (x > width || y > height || x + w < 0 || y + h < 0 || w < 0.5) return;
    const open = isOpen(this.layout, box, view.scale);
    const named = map.name[box] !== "";
    if (named) {
      context.fillStyle = this.colours.panel;
      context.fillRect(x, y, w, h);
      context.strokeStyle = this.colours.line;
      context.lineWidth = 1;
      if (w > 6) context.strokeRect(Math.round(x) + 0.5, Math.round(y) + 0.5, Math.round(w), Math.round(h));
    }
    if (!open) return this.closed(context, box, x, y, w, h);
    if (named) this.title(context, box, x, y, w, (map.ops_y[box] - map.y[box]) * view.scale);
    for (const child of this.layout.inside[box]) this.box(context, child, width, height);
    if (map.ops[box].length > 0) this.ops(context, box, width, height);
  }

  private title(
    context: CanvasRenderingContext2D,
    box: number,
    x: number,
    y: number,
    w: number,
    room: number,
    most = 13,
  ) {
    const size = Math.min(most, room - 2);
    if (size < 7 || w < 24) return;
    context.font = font(size, 600);
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillStyle = this.colours.text;
    context.fillText(cut(context, this.map.name[box], w - 8), x + Math.min(6, w / 12), y + room / 2);
  }

  // The shares of its categories, side by side, and its name above them where there is room.
  private closed(context: CanvasRenderingContext2D, box: number, x: number, y: number, w: number, h: number) {
    const counts = this.layout.counts[box];
    const sum = counts.reduce((a, b) => a + b, 0);
    if (sum === 0) return;
    const inset = Math.min(2, w / 8, h / 8);
    const header = this.map.name[box] && h > 32 && w > 34 ? 16 : 0;
    let left = x + inset;
    counts.forEach((count, i) => {
      if (count === 0) return;
      context.fillStyle = categoryColour(i);
      const wanted = this.layout.wanted[box][i];
      for (const [ops, alpha] of [[wanted, 1], [count - wanted, kPale]]) {
        const part = ((w - 2 * inset) * ops) / sum;
        context.globalAlpha = alpha;
        context.fillRect(left, y + inset + header, part, h - 2 * inset - header);
        left += part;
      }
    });
    context.globalAlpha = 1;
    if (header) this.title(context, box, x, y + 1, w, header, 11.5);
  }

  private ops(context: CanvasRenderingContext2D, box: number, width: number, height: number) {
    const { map, view } = this;
    const picture = this.layout.picture(box);
    const [left, top] = [this.x(map.ops_x[box]), this.y(map.ops_y[box])];
    const [w, h] = [picture.width * view.scale, picture.height * view.scale];
    if (left > width || top > height || left + w < 0 || top + h < 0) return;
    context.imageSmoothingEnabled = false;
    context.drawImage(picture, left, top, w, h);
    if (view.scale > 4) this.separate(context, left, top, picture, width, height);
    if (view.scale >= 40) this.types(context, box, width, height);
  }

  // Lines between the squares.
  private separate(
    context: CanvasRenderingContext2D,
    left: number,
    top: number,
    picture: HTMLCanvasElement,
    width: number,
    height: number,
  ) {
    const { scale } = this.view;
    const [right, bottom] = [left + picture.width * scale, top + picture.height * scale];
    context.strokeStyle = this.colours.panel;
    context.lineWidth = 1;
    context.beginPath();
    for (let x = left + scale * Math.max(0, Math.floor(-left / scale)); x <= Math.min(right + 1, width); x += scale) {
      context.moveTo(x, Math.max(top, 0));
      context.lineTo(x, Math.min(bottom, height));
    }
    for (let y = top + scale * Math.max(0, Math.floor(-top / scale)); y <= Math.min(bottom + 1, height); y += scale) {
      context.moveTo(Math.max(left, 0), y);
      context.lineTo(Math.min(right, width), y);
    }
    context.stroke();
  }

  private types(context: CanvasRenderingContext2D, box: number, width: number, height: number) {
    const { map, view } = this;
    const { ops } = this.layout.result.raw;
    context.font = font(10);
    context.fillStyle = "#fff";
    context.textAlign = "left";
    context.textBaseline = "middle";
    map.ops[box].forEach((op, i) => {
      const x = this.x(map.ops_x[box] + (i % map.columns[box]));
      const y = this.y(map.ops_y[box] + Math.floor(i / map.columns[box]));
      if (x > width || y > height || x + view.scale < 0 || y + view.scale < 0) return;
      context.fillText(cut(context, ops!.types[ops!.type[op]], view.scale - 6), x + 3, y + view.scale / 2);
    });
  }

  // The box that stands for it on the screen: itself, or the outermost closed box around it.
  private seen(box: number): number {
    let shown = box;
    for (let around = this.map.parent[box]; around >= 0; around = this.map.parent[around]) {
      if (!isOpen(this.layout, around, this.view.scale)) shown = around;
    }
    return shown;
  }

  private drawFlows(context: CanvasRenderingContext2D, width: number, height: number) {
    const sums = new Map<number, number>();
    const boxes = this.layout.inside.length;
    const seen = new Map<number, number>();
    const shown = (box: number) => {
      let found = seen.get(box);
      if (found === undefined) seen.set(box, (found = this.seen(box)));
      return found;
    };
    for (const { from, to, bytes } of this.flows) {
      const [a, b] = [shown(from), shown(to)];
      if (a !== b) sums.set(a * boxes + b, (sums.get(a * boxes + b) ?? 0) + bytes);
    }
    const largest = [...sums].sort((a, b) => b[1] - a[1]).slice(0, kLines);
    const most = largest[0]?.[1] ?? 1;
    context.strokeStyle = this.colours.text;
    for (const [key, bytes] of largest) {
      const [a, b] = [Math.floor(key / boxes), key % boxes];
      const [ax, ay, bx, by] = [...this.centre(a), ...this.centre(b)];
      if (Math.max(ax, bx) < 0 || Math.min(ax, bx) > width || Math.max(ay, by) < 0 || Math.min(ay, by) > height) continue;
      const strength = Math.sqrt(bytes / most);
      context.lineWidth = 0.5 + 4.5 * strength;
      context.globalAlpha = 0.12 + 0.4 * strength;
      const [cx, cy] = this.curve(context, ax, ay, bx, by);
      const steps = Math.ceil(Math.hypot(bx - ax, by - ay) / kReach) + 1;
      const points = Array.from({ length: steps }, (_, i): [number, number] => {
        const t = i / steps;
        const along = (start: number, middle: number, end: number) => (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t * t * end;
        return [along(ax, cx, bx), along(ay, cy, by)];
      });
      this.layout.lines.push({ from: a, to: b, bytes, points });
    }
    context.globalAlpha = 1;
  }

  private centre(box: number): [number, number] {
    const { map } = this;
    return [this.x(map.x[box] + map.width[box] / 2), this.y(map.y[box] + map.height[box] / 2)];
  }

  // Returns the point that it bends towards.
  private curve(context: CanvasRenderingContext2D, ax: number, ay: number, bx: number, by: number): [number, number] {
    const [cx, cy] = [(ax + bx) / 2 - (by - ay) * 0.15, (ay + by) / 2 + (bx - ax) * 0.15];
    context.beginPath();
    context.moveTo(ax, ay);
    context.quadraticCurveTo(cx, cy, bx, by);
    context.stroke();
    return [cx, cy];
  }

  private cell(op: number): [number, number, number] {
    const box = this.layout.result.boxOf[op];
    const shown = this.seen(box);
    if (shown !== box || !isOpen(this.layout, box, this.view.scale)) return [...this.centre(shown), 0];
    const i = this.map.ops[box].indexOf(op);
    const columns = this.map.columns[box];
    const x = this.x(this.map.ops_x[box] + (i % columns));
    return [x, this.y(this.map.ops_y[box] + Math.floor(i / columns)), this.view.scale];
  }

  private outline(context: CanvasRenderingContext2D, item: Item | null, colour: string) {
    if (!item) return;
    context.strokeStyle = colour;
    context.lineWidth = 2;
    const { result } = this.layout;
    if (item.type === "module") {
      this.map.path.forEach((path, box) => {
        if (path !== item.path || !this.map.name[box] || this.seen(box) !== box) return;
        context.strokeRect(this.x(this.map.x[box]), this.y(this.map.y[box]), this.map.width[box] * this.view.scale, this.map.height[box] * this.view.scale);
      });
      return;
    }
    if (item.type !== "op" && item.type !== "transfer") return;
    const ops = item.type === "op" ? [item.id] : [result.transfers.op[item.id], ...(result.raw.readers?.[item.id] ?? []).slice(0, 50)];
    for (const op of ops) {
      const [x, y, size] = this.cell(op);
      context.beginPath();
      if (size === 0) context.arc(x, y, 5, 0, 2 * Math.PI);
      else context.rect(x - 1, y - 1, Math.max(size, 4) + 1, Math.max(size, 4) + 1);
      context.stroke();
    }
  }

  // What the selected op reads from and is read by.
  private neighbours(context: CanvasRenderingContext2D, op: number) {
    const { result } = this.layout;
    const [x, y, size] = this.cell(op);
    context.strokeStyle = this.colours.accent;
    context.lineWidth = 1.5;
    for (const other of [...new Set([...result.raw.ops!.inputs[op], ...result.readersOf(op)])].slice(0, 100)) {
      const [ox, oy, width] = this.cell(other);
      this.curve(context, x + size / 2, y + size / 2, ox + width / 2, oy + width / 2);
    }
  }
}
