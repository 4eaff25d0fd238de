// A result with what views need worked out once: rows of slices, groups of modules, colours.
import { aside, same, type Item, type State } from "./store";
import type { RawResult, Step, Transfers } from "./types";

export interface Row {
  label: string;
  kind: "device" | "channel" | "step";
  index: number; // of the device, channel or line of steps
  lane: number; // of those that lie one below the other because their slices overlap
  lanes: number;
  measured: boolean;
  start: Float64Array;
  end: Float64Array;
  id: Int32Array; // ops, transfers or steps
  step: Uint8Array; // of a stream
}

export type Concerns = (op: number, step?: number) => boolean;

export type ColourBy = "module" | "phase" | "type" | "device" | "step" | "cut";

// A category of ops for each way to colour them.
export interface Colouring {
  names: string[];
  of: Uint16Array; // by op
}

export const phases = ["forward", "backward", "update"];
const kMostGroups = 12;

export class Result {
  readonly rows: Row[] = [];
  readonly end: number;
  readonly numOps: number;
  readonly deviceOrder: number[]; // as rows have them
  readonly laneOf: number[] = []; // by transfer of the simulated step
  private boxOf_: Int32Array | null = null;
  private lowered: string[] | null = null;
  private readersOf_: number[][] | null = null;
  private focused: { search: string; item: Item | null; concerns: Concerns | null } | null = null;
  private colourings = new Map<ColourBy, Colouring>();

  constructor(readonly raw: RawResult) {
    this.numOps = raw.ops?.name.length ?? 0;
    const devices = [...(raw.cluster?.devices.keys() ?? [])];
    const stages = raw.stream?.stages ?? [];
    this.deviceOrder = [...stages, ...devices.filter((device) => !stages.includes(device))];
    let end = raw.answer.step_ns ?? 0;
    if (raw.ops && raw.steps && raw.cluster) {
      if (raw.stream) this.addStepRows();
      // Pages of earlier versions do not say when steps enter.
      if (!raw.stream) raw.steps.length = 1;
      this.addRows(raw.steps, false);
      if (raw.measured) this.addRows([raw.measured], true);
      for (const row of this.rows) if (row.end.length > 0) end = Math.max(end, row.end[row.end.length - 1]);
    }
    // What later steps do is not known, so nothing is shown from the moment at which one enters.
    this.end = Math.max(this.until ?? end, 1);
  }

  // Whether there is a placement to show.
  get isAnswer(): boolean {
    return !this.raw.training && !this.raw.why_nothing_fits;
  }
  get time(): number {
    return this.raw.answer.period_ns ?? this.raw.answer.step_ns;
  }
  // Milliseconds of a step, where it was executed; of several placements, the first is the answer.
  get measured(): number | undefined {
    return this.raw.execution?.step_ms ?? this.raw.answer.measured?.[0].measured_ms;
  }
  get hasTimeline(): boolean {
    return this.rows.length > 0;
  }
  get isStream(): boolean {
    return this.raw.stream !== undefined;
  }
  // Of a stream: until when all that happens is known; null where other steps are there from the
  // beginning.
  get until(): number | null {
    const { stream } = this.raw;
    return stream && stream.entered[stream.finished.length] > 0 ? stream.entered[stream.finished.length] : null;
  }
  // Whether devices are the stages of a pipeline.
  get hasStages(): boolean {
    return this.isStream && this.raw.answer.stream!.in_flight! > 1 && this.raw.stream!.stages.length > 1;
  }

  // Steps from entry to finish, one in flight beside the other.
  private addStepRows() {
    const { entered, finished } = this.raw.stream!;
    const lines: number[][] = [];
    finished.forEach((_, step) => {
      let line = lines.find((steps) => finished[steps[steps.length - 1]] <= entered[step]);
      if (!line) lines.push((line = []));
      line.push(step);
    });
    lines.forEach((steps, index) => {
      const slices = steps.map((step) => [entered[step], finished[step] - entered[step], step, step]);
      this.addRow("step", "", index, false, slices, index, lines.length);
    });
  }

  private addRow(kind: Row["kind"], label: string, index: number, measured: boolean, slices: number[][], lane = 0, lanes = 1) {
    const start = Float64Array.from(slices, (slice) => slice[0]);
    const end = Float64Array.from(slices, (slice) => slice[0] + slice[1]);
    const id = Int32Array.from(slices, (slice) => slice[2]);
    const step = Uint8Array.from(slices, (slice) => slice[3]);
    this.rows.push({ label, kind, index, lane, lanes, measured, start, end, id, step });
  }

  private addRows(steps: Step[], measured: boolean) {
    const { ops, cluster } = this.raw;
    const devices: number[][][] = cluster!.devices.map(() => []);
    const channels: number[][][] = cluster!.channels.map(() => []);
    const until = (measured ? null : this.until) ?? Infinity;
    steps.forEach((step, number) => {
      for (let op = 0; op < step.start.length; ++op) {
        if (step.length[op] > 0 && step.start[op] < until) devices[ops!.device[op]].push([step.start[op], step.length[op], op, number]);
      }
      const sent = step.transfers;
      for (let i = 0; i < sent.op.length; ++i) {
        if (sent.length[i] > 0 && !sent.shared[i] && sent.channel[i] >= 0 && sent.start[i] < until) {
          channels[sent.channel[i]].push([sent.start[i], sent.length[i], i, number]);
        }
      }
    });
    const inOrder = (slices: number[][]) => slices.sort((a, b) => a[0] - b[0]);
    for (const i of this.deviceOrder) this.addRow("device", cluster!.devices[i].name, i, measured, inOrder(devices[i]));
    channels.forEach((slices, i) => {
      // An unlimited channel carries transfers side by side.
      const lanes: number[][][] = [];
      for (const slice of inOrder(slices)) {
        let lane = lanes.findIndex((before) => before[before.length - 1][0] + before[before.length - 1][1] <= slice[0]);
        if (lane < 0) lane = lanes.push([]) - 1;
        lanes[lane].push(slice);
        if (!measured && slice[3] === 0) this.laneOf[slice[2]] = lane;
      }
      lanes.forEach((lane, number) => this.addRow("channel", cluster!.channels[i], i, measured, lane, number, lanes.length));
    });
  }

  // Of the simulated step (of a stream, of its first).
  get step(): Step {
    return this.raw.steps![0];
  }
  get transfers(): Transfers {
    return this.step.transfers;
  }
  transfersOf(row: Row, slice: number): Transfers {
    return row.measured ? this.raw.measured!.transfers : this.raw.steps![row.step[slice]].transfers;
  }

  opOf(row: Row, slice: number): number {
    if (row.kind === "step") return -1;
    return row.kind === "device" ? row.id[slice] : this.transfersOf(row, slice).op[row.id[slice]];
  }

  moduleOf(op: number): string {
    return this.raw.ops!.modules[this.raw.ops!.module[op]];
  }

  readersOf(op: number): number[] {
    if (!this.readersOf_) {
      this.readersOf_ = Array.from({ length: this.numOps }, () => []);
      this.raw.ops!.inputs.forEach((inputs, reader) => {
        for (const producer of new Set(inputs)) this.readersOf_![producer].push(reader);
      });
    }
    return this.readersOf_[op];
  }

  matches(text: string): number[] {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    this.lowered ??= this.raw.ops!.name.map((name) => name.toLowerCase());
    const found: number[] = [];
    this.lowered.forEach((name, op) => {
      if (name.includes(wanted)) found.push(op);
    });
    return found;
  }

  // By op: the box of the map that it is in.
  get boxOf(): Int32Array {
    if (!this.boxOf_) {
      this.boxOf_ = new Int32Array(this.numOps).fill(-1);
      this.raw.map!.ops.forEach((ops, box) => ops.forEach((op) => (this.boxOf_![op] = box)));
    }
    return this.boxOf_;
  }

  // Whether an op is what is meant, or in it, at all or in a step.
  concerns(item: Item): Concerns {
    const { ops, readers } = this.raw;
    switch (item.type) {
      case "op":
        return (op) => op === item.id;
      case "step":
        return (_, step) => step === undefined || step === item.id;
      case "transfer": {
        const ends = new Set([this.transfers.op[item.id], ...(readers?.[item.id] ?? [])]);
        return (op) => ends.has(op);
      }
      case "device":
        return (op) => ops!.device[op] === item.id;
      case "module": {
        const inside = ops!.modules.map((path) => path === item.path || path.startsWith(item.path + "."));
        return (op) => inside[ops!.module[op]];
      }
    }
  }

  // What is plain while something is looked for or pointed at, and the rest steps back; null: all.
  // The same while that is the same.
  focus(state: State): Concerns | null {
    const item = aside(state);
    const last = this.focused;
    if (last && last.search === state.search && same(last.item, item)) return last.concerns;
    const found = state.search.trim() ? new Set(this.matches(state.search)) : null;
    const concerns = found ? (op: number) => found.has(op) : item && this.concerns(item);
    this.focused = { search: state.search, item, concerns };
    return concerns;
  }

  // Which colourings there are, the usual one first.
  colourChoices(forMap: boolean): ColourBy[] {
    const all: ColourBy[] = forMap ? ["device", "module", "phase", "type"] : ["module", "phase", "type", "device"];
    if (this.raw.cuts) all.unshift("cut");
    if (this.isStream && !forMap) all.unshift("step");
    return all;
  }

  colouring(by: ColourBy): Colouring {
    let found = this.colourings.get(by);
    if (!found) this.colourings.set(by, (found = this.makeColouring(by)));
    return found;
  }

  private makeColouring(by: ColourBy): Colouring {
    const { ops, cluster, cuts } = this.raw;
    if (by === "phase") return { names: phases, of: Uint16Array.from(ops!.phase) };
    if (by === "device") return { names: cluster!.devices.map((d) => d.name), of: Uint16Array.from(ops!.device) };
    if (by === "type") return this.largest(ops!.types, (op) => ops!.type[op]);
    if (by === "step") {
      return { names: this.raw.steps!.map((_, i) => `step ${i + 1}`), of: new Uint16Array(this.numOps) };
    }
    if (by === "cut") {
      const rest = cuts!.names.length;
      return {
        names: [...cuts!.names, "between devices"],
        of: Uint16Array.from(cuts!.of_op, (cut) => (cut < 0 ? rest : cut)),
      };
    }
    return this.moduleGroups();
  }

  // The categories that take most time, and the rest as one.
  private largest(names: string[], category: (op: number) => number): Colouring {
    const time = new Float64Array(names.length);
    for (let op = 0; op < this.numOps; ++op) time[category(op)] += this.step.length[op];
    const order = [...names.keys()].sort((a, b) => time[b] - time[a]).filter((i) => time[i] > 0);
    const kept = order.slice(0, order.length > kMostGroups ? kMostGroups - 1 : kMostGroups);
    const number = new Map(kept.map((category, i) => [category, i]));
    const of = new Uint16Array(this.numOps);
    for (let op = 0; op < this.numOps; ++op) of[op] = number.get(category(op)) ?? kept.length;
    return { names: [...kept.map((i) => names[i] || "(none)"), "others"], of };
  }

  // Boxes of the map, the largest opened as long as there are not too many.
  private moduleGroups(): Colouring {
    const { map } = this.raw;
    const inside: number[][] = map!.parent.map(() => []);
    map!.parent.forEach((parent, box) => parent >= 0 && inside[parent].push(box));
    const size = map!.ops.map((ops) => ops.length);
    for (let box = size.length - 1; box > 0; --box) size[map!.parent[box]] += size[box];
    let groups = [0];
    for (;;) {
      const open = groups
        .filter((box) => inside[box].length > 0 && groups.length + inside[box].length - 1 <= kMostGroups)
        .sort((a, b) => size[b] - size[a])[0];
      if (open === undefined) break;
      groups = groups.flatMap((box) => (box === open ? inside[box] : [box]));
    }
    const group = new Int32Array(size.length).fill(-1);
    groups.forEach((box, i) => (group[box] = i));
    for (let box = 1; box < size.length; ++box) if (group[box] < 0) group[box] = group[map!.parent[box]];
    if (groups.length === 1) return this.largest(this.raw.ops!.modules, (op) => this.raw.ops!.module[op]);
    const of = new Uint16Array(this.numOps);
    for (let op = 0; op < this.numOps; ++op) of[op] = Math.max(0, group[this.boxOf[op]]);
    return { names: groups.map((box) => map!.path[box] || map!.name[box] || "others"), of };
  }
}
