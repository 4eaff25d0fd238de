// The map of the model: modules as boxes in boxes, opened as far as there is room, down to ops.
// Lines are tensors that go from one device to another, wider for more bytes.
import { useMemo, useState } from "preact/hooks";
import { cut, font, onKey, useCanvas, useGestures, type Drawing, type Place } from "./canvas";
import { categoryColour, theme } from "./colours";
import { opLine } from "./explain";
import * as format from "./format";
import { ColourChoice, Legend, Tooltip, ZoomButtons, type TooltipText } from "./parts";
import type { ColourBy, Concerns, Result } from "./result";
import type { Item, State, Store } from "./store";

const kHeight = 520;
const kOpenWidth = 70; // a box that is smaller than this on the screen stays closed
const kOpenHeight = 44;
const kLines = 160;
const kPale = 0.18; // how opaque what steps back is

// Where the map is: times `scale`, then moved.
interface View {
  scale: number;
  x: number;
  y: number;
}

// What does not change while one moves about.
class Layout {
  readonly inside: number[][];
  readonly counts: Float64Array[]; // by box: ops of each category
  private readonly pictures = new Map<number, HTMLCanvasElement>();
  private readonly of: Uint16Array;
  private readonly palette: Uint8ClampedArray;
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
interface Flow {
  from: number;
  to: number;
  bytes: number;
}

function flowsOf(result: Result): Flow[] {
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

export function ModelMapView({ result, store }: { result: Result; store: Store }) {
  const choices = result.colourChoices(true);
  const [by, setBy] = useState<ColourBy>(choices[0]);
  const [lines, setLines] = useState(true);
  const [view, setView] = useState<View | null>(null);
  const [tip, setTip] = useState<TooltipText | null>(null);
  const layout = useMemo(() => new Layout(result, by), [result, by]);
  const flows = useMemo(() => flowsOf(result), [result]);
  const map = result.raw.map!;
  const fitted = (width: number): View => {
    const scale = Math.min((width - 8) / map.width[0], (kHeight - 8) / map.height[0]);
    return { scale, x: (width - map.width[0] * scale) / 2, y: (kHeight - map.height[0] * scale) / 2 };
  };
  const current = (width: number) => view ?? fitted(width);
  const depends = (state: State) => [state.selected, state.hovered, state.search, state.theme];
  const canvas = useCanvas(store, kHeight, depends, (drawing) =>
    new MapPainter(layout, flows, store, current(drawing.width), lines).draw(drawing),
  );

  const zoom = (factor: number, x?: number, y?: number) => {
    const width = canvas.current!.clientWidth;
    const now = current(width);
    const least = fitted(width).scale / 2;
    const scale = Math.min(Math.max(now.scale * factor, least), 60);
    const [cx, cy] = [x ?? width / 2, y ?? kHeight / 2];
    setView({ scale, x: cx - ((cx - now.x) * scale) / now.scale, y: cy - ((cy - now.y) * scale) / now.scale });
  };
  const showBox = (box: number) => {
    const width = canvas.current!.clientWidth;
    const scale = Math.min((0.9 * width) / map.width[box], (0.9 * kHeight) / map.height[box], 60);
    setView({
      scale,
      x: width / 2 - (map.x[box] + map.width[box] / 2) * scale,
      y: kHeight / 2 - (map.y[box] + map.height[box] / 2) * scale,
    });
  };
  const find = ({ x, y, width }: Place): Found => hit(layout, current(width), x, y);
  const itemOf = (found: Found): Item | null =>
    found.op >= 0 ? { type: "op", id: found.op } : found.box > 0 && map.path[found.box] ? { type: "module", path: map.path[found.box] } : null;
  const gestures = useGestures(canvas, {
    begin: () => current(canvas.current!.clientWidth),
    drag: (start, dx, dy) => {
      setTip(null);
      setView({ ...start, x: start.x + dx, y: start.y + dy });
    },
    hover: (place) => {
      const found = find(place);
      store.hover(itemOf(found));
      setTip(found.op < 0 && found.box <= 0 ? null : { x: place.clientX, y: place.clientY, ...textOf(layout, found, by) });
    },
    click: (place) => store.select(itemOf(find(place))),
    leave: () => {
      setTip(null);
      store.hover(null);
    },
    zoom: (factor, { x, y }) => zoom(factor, x, y),
  });
  const shift = (dx: number, dy: number) => {
    const now = current(canvas.current!.clientWidth);
    setView({ ...now, x: now.x + dx, y: now.y + dy });
  };
  const keys: Record<string, () => void> = {
    "+": () => zoom(1.4),
    "=": () => zoom(1.4),
    "-": () => zoom(1 / 1.4),
    "0": () => setView(null),
    ArrowLeft: () => shift(60, 0),
    ArrowRight: () => shift(-60, 0),
    ArrowUp: () => shift(0, 60),
    ArrowDown: () => shift(0, -60),
    Escape: () => store.set({ selected: null }),
  };

  return (
    <section id="map" aria-labelledby="map-title">
      <h2 id="map-title">Map of the model</h2>
      <div class="tools">
        <ColourChoice choices={choices} by={by} onChange={setBy} />
        <label>
          <input type="checkbox" checked={lines} onChange={() => setLines(!lines)} /> what crosses devices
        </label>
        <span class="spacer" />
        <ZoomButtons onZoom={zoom} onAll={() => setView(null)} all="The whole model" />
      </div>
      <canvas
        ref={canvas}
        class="drag framed"
        style={{ height: `${kHeight}px` }}
        tabIndex={0}
        role="application"
        aria-label="Map of the model. Arrow keys move, plus and minus zoom, 0 shows all."
        {...gestures}
        onDblClick={(event) => {
          const bounds = canvas.current!.getBoundingClientRect();
          const { box } = hit(layout, current(bounds.width), event.clientX - bounds.left, event.clientY - bounds.top);
          if (box >= 0) showBox(box);
        }}
        onKeyDown={(event) => onKey(event, keys)}
      />
      <Legend names={result.colouring(by).names} used={[...layout.counts[0]].map((count) => count > 0)} colour={categoryColour} />
      <p class="hint">
        Boxes are modules in the order of the forward pass, squares are ops; a closed box shows its ops’ shares. Double-click opens a box, drag
        moves, Ctrl + wheel zooms.
      </p>
      {tip && <Tooltip {...tip} />}
    </section>
  );
}

interface Found {
  box: number;
  op: number;
}

function isOpen(layout: Layout, box: number, scale: number): boolean {
  const map = layout.result.raw.map!;
  const room = map.width[box] * scale >= kOpenWidth && map.height[box] * scale >= kOpenHeight;
  return layout.inside[box].length > 0 ? room : scale >= 2.5;
}

function hit(layout: Layout, view: View, x: number, y: number): Found {
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

function textOf(layout: Layout, { box, op }: Found, by: ColourBy): Omit<TooltipText, "x" | "y"> {
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

class MapPainter {
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
      this.curve(context, ax, ay, bx, by);
    }
    context.globalAlpha = 1;
  }

  private centre(box: number): [number, number] {
    const { map } = this;
    return [this.x(map.x[box] + map.width[box] / 2), this.y(map.y[box] + map.height[box] / 2)];
  }

  private curve(context: CanvasRenderingContext2D, ax: number, ay: number, bx: number, by: number) {
    context.beginPath();
    context.moveTo(ax, ay);
    context.quadraticCurveTo((ax + bx) / 2 - (by - ay) * 0.15, (ay + by) / 2 + (bx - ax) * 0.15, bx, by);
    context.stroke();
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
