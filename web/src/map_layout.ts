// What the map shows: boxes in boxes, opened as far as there is room, ops as squares, and what lies
// where on the screen.
import { categoryColour } from "./colours";
import { opLine } from "./explain";
import * as format from "./format";
import type { TooltipText } from "./parts";
import type { ColourBy, Concerns, Result } from "./result";

const kOpenWidth = 70; // a box that is smaller than this on the screen stays closed
const kOpenHeight = 44;
export const kPale = 0.18; // how opaque what steps back is

// Where the map is: times `scale`, then moved.
export interface View {
  scale: number;
  x: number;
  y: number;
}

// What does not change while one moves about.
export class Layout {
  readonly inside: number[][];
  readonly counts: Float64Array[]; // by box: ops of each category
  private readonly pictures = new Map<number, HTMLCanvasElement>();
  private readonly of: Uint16Array;
  private readonly palette: Uint8ClampedArray;
  lines: Line[] = []; // as they were last drawn
  wanted: Float64Array[]; // and how many of them do not step back
  private focus: Concerns | null = null;

  constructor(
    readonly result: Result,
    by: ColourBy,
  ) {
    const map = result.raw.map!;
    const { names, of } = result.colouring(by);
    this.of = of;
    this.palette = paletteOf(names.length);
    this.inside = map.parent.map(() => []);
    map.parent.forEach((parent, box) => parent >= 0 && this.inside[parent].push(box));
    this.counts = this.wanted = this.counted(names.length, () => true);
  }

  private counted(categories: number, concerns: Concerns): Float64Array[] {
    const { parent, ops } = this.result.raw.map!;
    const counts = parent.map(() => new Float64Array(categories));
    ops.forEach((inside, box) => inside.forEach((op) => concerns(op) && ++counts[box][this.of[op]]));
    for (let box = parent.length - 1; box > 0; --box) counts[box].forEach((count, i) => (counts[parent[box]][i] += count));
    return counts;
  }

  stepBackBeside(focus: Concerns | null) {
    if (focus === this.focus) return;
    this.focus = focus;
    this.pictures.clear();
    this.wanted = focus ? this.counted(this.counts[0].length, focus) : this.counts;
  }

  // A box's ops, a pixel each: drawn larger they are squares, however many there are.
  picture(box: number): HTMLCanvasElement {
    let canvas = this.pictures.get(box);
    if (canvas) return canvas;
    const { ops, columns } = this.result.raw.map!;
    canvas = document.createElement("canvas");
    canvas.width = columns[box];
    canvas.height = Math.ceil(ops[box].length / columns[box]);
    const context = canvas.getContext("2d")!;
    const image = context.createImageData(canvas.width, canvas.height);
    ops[box].forEach((op, i) => {
      for (let part = 0; part < 3; ++part) image.data[4 * i + part] = this.palette[4 * this.of[op] + part];
      image.data[4 * i + 3] = this.focus && !this.focus(op) ? 255 * kPale : 255;
    });
    context.putImageData(image, 0, 0);
    this.pictures.set(box, canvas);
    return canvas;
  }
}

// Colours as bytes.
function paletteOf(count: number): Uint8ClampedArray {
  const canvas = document.createElement("canvas");
  canvas.width = count;
  canvas.height = 1;
  const context = canvas.getContext("2d")!;
  for (let i = 0; i < count; ++i) {
    context.fillStyle = categoryColour(i);
    context.fillRect(i, 0, 1, 1);
  }
  return context.getImageData(0, 0, count, 1).data;
}

// What goes to other devices from one box of ops to another.
export interface Flow {
  from: number;
  to: number;
  bytes: number;
}

// A flow between boxes that are seen, on the screen.
export interface Line extends Flow {
  points: [number, number][];
}

export function flowsOf(result: Result): Flow[] {
  const { readers, map } = result.raw;
  const { transfers } = result;
  const bytes = new Map<number, number>();
  const boxes = map!.parent.length;
  readers?.forEach((ops, transfer) => {
    const from = result.boxOf[transfers.op[transfer]];
    for (const to of new Set(ops.map((op) => result.boxOf[op]))) {
      const key = from * boxes + to;
      bytes.set(key, (bytes.get(key) ?? 0) + transfers.bytes[transfer]);
    }
  });
  return [...bytes].map(([key, sum]) => ({ from: Math.floor(key / boxes), to: key % boxes, bytes: sum }));
}

export interface Found {
  box: number;
  op: number;
}

export function isOpen(layout: Layout, box: number, scale: number): boolean {
  const map = layout.result.raw.map!;
  const room = map.width[box] * scale >= kOpenWidth && map.height[box] * scale >= kOpenHeight;
  return layout.inside[box].length > 0 ? room : scale >= 2.5;
}

export function hit(layout: Layout, view: View, x: number, y: number): Found {
  const map = layout.result.raw.map!;
  const [mx, my] = [(x - view.x) / view.scale, (y - view.y) / view.scale];
  const within = (box: number) =>
    mx >= map.x[box] && my >= map.y[box] && mx < map.x[box] + map.width[box] && my < map.y[box] + map.height[box];
  if (!within(0)) return { box: -1, op: -1 };
  let box = 0;
  while (isOpen(layout, box, view.scale)) {
    const next = layout.inside[box].find(within);
    if (next === undefined) break;
    box = next;
  }
  let op = -1;
  if (map.ops[box].length > 0 && isOpen(layout, box, view.scale)) {
    const [column, row] = [Math.floor(mx - map.ops_x[box]), Math.floor(my - map.ops_y[box])];
    if (column >= 0 && column < map.columns[box] && row >= 0) op = map.ops[box][row * map.columns[box] + column] ?? -1;
  }
  return { box, op };
}

export function textOf(layout: Layout, { box, op }: Found, by: ColourBy): Omit<TooltipText, "x" | "y"> {
  const { result } = layout;
  const { ops, map, cuts } = result.raw;
  if (op >= 0) {
    const lines = [opLine(result, op), `${format.time(result.step.length[op])}, writes ${format.bytes(ops!.bytes[op])}`];
    if (cuts && cuts.of_op[op] >= 0) lines.push(`cut: ${cuts.names[cuts.of_op[op]]}`);
    return { title: ops!.name[op], lines };
  }
  const counts = layout.counts[box];
  const sum = counts.reduce((a, b) => a + b, 0);
  const names = result.colouring(by).names;
  const shares = [...counts.keys()].filter((i) => counts[i] > 0).sort((a, b) => counts[b] - counts[a]);
  return {
    title: map!.path[box] || map!.name[box] || "beside the modules",
    lines: [
      format.counted(sum, "op"),
      ...shares.slice(0, 8).map((i) => `${names[i]} ${format.percent(counts[i] / Math.max(1, sum))}`),
    ],
  };
}

export function lineText({ result }: Layout, { from, to, bytes }: Line): Omit<TooltipText, "x" | "y"> {
  const { map } = result.raw;
  const name = (box: number) => map!.path[box] || map!.name[box] || "beside the modules";
  return { title: `${name(from)} → ${name(to)}`, lines: [`${format.bytes(bytes)} to other devices`] };
}
