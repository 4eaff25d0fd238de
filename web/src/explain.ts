// Sentences about an op or a transfer: what it is, and what it waited for.
import * as format from "./format";
import type { Result, Row } from "./result";
import { phases } from "./result";

// The last slice of the row that starts before the time.
export function before(row: Row, time: number): number {
  let low = 0;
  let high = row.start.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row.start[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export function deviceRow(result: Result, device: number): Row {
  return result.rows.find((row) => row.kind === "device" && row.index === device && !row.measured)!;
}

export function opLine(result: Result, op: number): string {
  const { ops, cluster } = result.raw;
  const parts = [ops!.types[ops!.type[op]], phases[ops!.phase[op]], cluster!.devices[ops!.device[op]].name];
  const module = result.moduleOf(op);
  if (module) parts.push(module);
  return parts.join(" · ");
}

// What ran on the op's device between the times: how many ops, and the longest of them.
function inTheWay(result: Result, op: number, step: number, from: number, to: number): { count: number; longest: number; step: number } {
  const row = deviceRow(result, result.raw.ops!.device[op]);
  let count = 0;
  let longest = -1;
  let most = 0;
  for (let i = Math.max(0, before(row, from)); i < row.start.length && row.start[i] < to; ++i) {
    const overlap = Math.min(row.end[i], to) - Math.max(row.start[i], from);
    if (overlap <= 0 || (row.id[i] === op && row.step[i] === step)) continue;
    ++count;
    if (overlap > most) {
      most = overlap;
      longest = i;
    }
  }
  return { count, longest: longest < 0 ? -1 : row.id[longest], step: longest < 0 ? -1 : row.step[longest] };
}

export function waitLines(result: Result, op: number, step = 0): string[] {
  const { ops, cluster, stream } = result.raw;
  const causes = stream ? stream.causes[step] : result.raw.causes;
  if (!causes) return [];
  const name = (id: number) => ops!.name[id];
  const device = cluster!.devices[ops!.device[op]].name;
  const entered = stream?.entered[step] ?? 0;
  const { start: starts, length: lengths, transfers: sent } = result.raw.steps![step];
  const start = starts[op];
  const ready = Math.max(causes.time[op], entered);
  const lines: string[] = [];
  const cause = causes.op[op];
  const transfer = causes.transfer[op];
  if (cause < 0) {
    lines.push(entered > 0 ? "ready when its step entered" : "ready from the beginning");
  } else if (transfer >= 0) {
    const queued = sent.start[transfer] - sent.queued[transfer];
    lines.push(
      `last input: ${format.bytes(sent.bytes[transfer])} of ${name(cause)} from ` +
        `${cluster!.devices[sent.from[transfer]].name}, ${format.time(sent.length[transfer])} on the way` +
        (queued > 0 ? ` after ${format.time(queued)} in the queue` : ""),
    );
  } else {
    lines.push(`last input: ${name(cause)}, on the same device`);
  }
  if (start > ready) {
    const { count, longest, step: other } = inTheWay(result, op, step, ready, start);
    const whose = count > 0 && other !== step ? ` of step ${other + 1}` : "";
    lines.push(
      count > 0
        ? `then waited ${format.time(start - ready)} for ${device}, which ran ` +
            `${format.counted(count, "other op")}, ${name(longest)}${whose}` + (count > 1 ? " longest" : "")
        : `then waited ${format.time(start - ready)} for ${device} to be free`,
    );
  }
  const row = deviceRow(result, ops!.device[op]);
  const last = before(row, start);
  const free = last >= 0 ? row.end[last] : 0;
  // Steps that are not shown may run there meanwhile.
  if ((!result.isStream || result.until) && ready > free && lengths[op] > 0) {
    lines.push(`${device} stood idle ${format.time(ready - free)} before it, waiting for this input`);
  }
  return lines;
}

export function stepLines(result: Result, step: number): string[] {
  const { entered, finished } = result.raw.stream!;
  const lines = [
    `enters at ${format.time(entered[step])}, ends at ${format.time(finished[step])}: in flight for ${format.time(finished[step] - entered[step])}`,
  ];
  if (step > 0) lines.push(`ends ${format.time(finished[step] - finished[step - 1])} after step ${step}`);
  return lines;
}

export function transferLines(result: Result, transfers: Result["transfers"], id: number): string[] {
  const { cluster, ops } = result.raw;
  const waited = transfers.start[id] - transfers.queued[id];
  const lines = [
    `${format.bytes(transfers.bytes[id])} from ${cluster!.devices[transfers.from[id]].name} to ` +
      `${cluster!.devices[transfers.to[id]].name}, ${format.time(transfers.length[id])}`,
  ];
  if (waited > 0) {
    lines.push(`waited ${format.time(waited)} for channel ${cluster!.channels[transfers.channel[id]]}`);
  }
  const readers = transfers === result.transfers ? (result.raw.readers?.[id] ?? []) : [];
  if (readers.length > 0) {
    lines.push(
      `for ${ops!.name[readers[0]]}` + (readers.length > 1 ? ` and ${format.counted(readers.length - 1, "other op")}` : ""),
    );
  }
  return lines;
}
