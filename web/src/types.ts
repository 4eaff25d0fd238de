// The page's data as src/report/page_data.h writes it. What was not looked at is absent.
export interface DeviceFigures {
  name: string;
  busy_ns?: number;
  peak_bytes: number;
  capacity_bytes: number | null;
}

export interface OneDevice {
  device: string;
  step_ns?: number;
  period_ns?: number;
  fits: boolean;
  peak_bytes: number;
}

export interface HeldModules {
  first: string;
  last: string;
  count: number;
  share: number;
  work: number;
}

export interface Sensitivity {
  resource: string;
  factor: number;
  what?: string;
  step_ns?: number;
  period_ns?: number;
  fits: boolean;
}

export interface Explanation {
  chain: {
    compute_ns: number;
    transfer_ns: number;
    device_wait_ns: number;
    channel_wait_ns: number;
    idle_ns: number;
  };
  loads: { kind: string; name: string; load_ns: number }[];
  contents: { device: string; work: number; resident_bytes: number; modules: HeldModules[] }[];
  cut_modules: { module: string; devices: string[] }[];
  fastest_device: OneDevice | null;
  fitting_device: OneDevice | null;
  in_parts?: { method: string; step_ns: number; fits: boolean };
  batches?: { largest: number | null; tried: { batch: number; fits: boolean; how: string }[] };
  sensitivities?: { step_ns?: number; period_ns?: number; fits: boolean; list: Sensitivity[] };
}

export interface Answer {
  version?: string;
  model?: string;
  graph?: string;
  cluster?: string;
  objective?: string;
  budget?: { seconds: number | null; evaluations: number | null; threads: number };
  made_with?: Record<string, unknown>;
  step_ns: number;
  period_ns?: number;
  stream?: { in_flight?: number; latency_ns?: number; updates_behind?: number };
  fits: boolean;
  lower_bound_ns?: number;
  lower_bound_reason?: string;
  optimal?: boolean;
  gap?: number | null;
  rates?: Record<string, number>;
  devices?: DeviceFigures[];
  channels?: { name: string; busy_ns: number; bytes: number }[];
  transfers?: number;
  transfer_bytes?: number;
  placer?: string;
  scheduler?: string;
  seed?: number;
  evaluations?: number;
  seconds?: number;
  explanation?: Explanation;
  measured?: {
    origin: string;
    predicted_ms: number;
    measured_ms?: number;
    measured_ms_quartiles?: number[];
    failure?: string;
  }[];
}

export interface Transfers {
  op: number[];
  bytes: number[];
  from: number[];
  to: number[];
  channel: number[];
  queued: number[];
  start: number[];
  length: number[];
  shared: number[];
}

export interface Step {
  start: number[];
  length: number[];
  transfers: Transfers;
}

// By op: the last thing that it waited for, and until when.
export interface Causes {
  time: number[];
  op: number[];
  transfer: number[];
}

// The first steps of a stream. Before the last entry, which is of a step that is not among them,
// they are all that happens.
export interface Stream {
  entered: number[]; // one more than steps
  finished: number[];
  stages: number[]; // devices, in the order of the pipeline
  causes: Causes[]; // by step
}

export interface Ops {
  name: string[];
  type: number[];
  module: number[];
  phase: number[];
  device: number[];
  bytes: number[];
  inputs: number[][];
  types: string[];
  modules: string[];
}

export interface Cluster {
  name: string;
  devices: { name: string; kind: string; memory: number | null; cpu: boolean }[];
  channels: string[];
  links: [number, number, number, number, number][]; // from, to, channel, bandwidth, latency
}

export interface MemoryOfDevice {
  time: number[];
  held: number[][];
  peak: number;
  peak_time: number;
  largest: { op: number; use: number; bytes: number; begin: number; end: number; step?: number }[];
}

export interface ModelMap {
  parent: number[];
  name: string[];
  path: string[];
  x: number[];
  y: number[];
  width: number[];
  height: number[];
  ops_x: number[];
  ops_y: number[];
  columns: number[];
  ops: number[][];
}

export interface Search {
  placer: string;
  scheduler: string;
  seed: number;
  points: [number, number, number | null, boolean, number][]; // s, evaluations, best, fits, bound
  rounds: [number, number, number, number][]; // s, best, best of the round, mean
}

export interface Way {
  how: string;
  step_ns: number;
  fits: boolean;
  transfer_bytes: number;
  devices?: DeviceFigures[];
}

export interface Execution {
  warnings: string[];
  steps: number;
  step_ms: number;
  step_ms_quartiles: number[];
  predicted_ms: number;
  predicted_ratio: number;
  oracle_ms: number;
  oracle_ratio: number;
  drift?: number | null;
  losses?: (number | null)[]; // null: not a number
  devices: { name: string; busy_ms: number; peak_bytes: number; predicted_peak_bytes: number }[];
  types: { type: string; ops: number; measured_ms: number; predicted_ms: number }[];
}

// A column for each figure, a row for each step; null where a phase has no such figure.
export interface TrainingColumns {
  step: number[];
  seconds: number[];
  evaluations: number[];
  phase: string[];
  likelihood: (number | null)[];
  relative_time: (number | null)[];
  fitting_share: (number | null)[];
}

// What --json prints of a training.
export interface TrainingAnswer {
  policy: string;
  output: string;
  graphs: string[];
  clusters: string[];
  seed: number;
  tasks: number;
  steps: number;
  finished: boolean;
  evaluations: number;
  seconds: number;
  relative_time: number | null;
  fitting_share: number | null;
}

// Where op times come from; how far estimates are off, where there are measured times.
export interface Cost {
  source: string;
  ops: number;
  share: number;
  errors?: { kind: string; ops: number; error: number }[];
}

export interface RawResult {
  title: string;
  kind: string;
  command: string;
  scale?: Record<string, number>; // of the hardware, which the command asks for
  divide?: string; // the command that divides tensors instead
  answer: Answer;
  text?: { gap: string; stream?: string[] };
  costs?: Cost[];
  cluster?: Cluster;
  ops?: Ops;
  steps?: Step[];
  readers?: number[][];
  causes?: Causes;
  stream?: Stream;
  chain?: {
    kind: number[];
    start: number[];
    length: number[];
    op: number[];
    transfer: number[];
    ahead: number[];
    longest: number[];
  };
  memory?: { uses: string[]; devices: MemoryOfDevice[] };
  map?: ModelMap;
  searches?: Search[];
  comparison?: { runs: Answer[] };
  partition?: Way & {
    method: string;
    workers: number;
    verdict: string;
    compared?: Way[];
    on_fewer?: Way;
    one_device?: Way;
    placement?: Way;
  };
  cuts?: { names: string[]; of_op: number[] };
  execution?: Execution;
  measured?: Step;
  why_nothing_fits?: string; // then the answer has no figures
  training?: Partial<TrainingColumns>; // then the answer is a TrainingAnswer
}

export interface Data {
  format: string;
  version: string;
  results: RawResult[];
}
