// Numbers as the program writes them.
export function time(ns: number): string {
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  const [value, unit] = ns < 1e6 ? [ns / 1e3, "µs"] : ns < 1e10 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  return `${value.toFixed(value >= 100 ? 1 : value >= 10 ? 2 : 3)} ${unit}`;
}

// Of what was measured.
export const milliseconds = (ms: number) => `${ms.toPrecision(4)} ms`;

export function bytes(count: number | null): string {
  if (count === null) return "unlimited";
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = count;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit + 1 < names.length) {
    value /= 1024;
    ++unit;
  }
  return unit === 0 ? `${count} B` : `${value.toFixed(Math.abs(value) < 100 ? 1 : 0)} ${names[unit]}`;
}

export function count(n: number): string {
  return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

export function counted(n: number, thing: string): string {
  return `${count(n)} ${thing}${n === 1 ? "" : "s"}`;
}

export function percent(share: number): string {
  const value = 100 * share;
  if (value > 0 && value < 0.05) return "< 0.1 %";
  const fine = (value > 0 && value < 0.95) || (value > 99 && value < 99.95);
  return `${value.toFixed(fine ? 1 : 0)} %`;
}

// A limit from above, so rounded up.
export function atMost(share: number): string {
  const tenths = Math.ceil(1000 * share - 1e-9) / 10;
  return `${tenths < 1 ? tenths.toFixed(1) : Math.ceil(100 * share - 1e-9)} %`;
}

export function times(ratio: number): string {
  return `${ratio.toFixed(2)}×`;
}

// Per second: bandwidths and rates, by powers of 1000.
export function perSecond(value: number, unit: string): string {
  const names = ["", "k", "M", "G", "T", "P"];
  let step = 0;
  while (value >= 1000 && step + 1 < names.length) {
    value /= 1000;
    ++step;
  }
  return `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0).replace(/\.0+$/, "")} ${names[step]}${unit}`;
}

export function seconds(value: number): string {
  if (value < 1) return `${(1000 * value).toFixed(value < 0.01 ? 1 : 0)} ms`;
  return value < 600 ? `${value.toFixed(value < 100 ? 2 : 0)} s` : `${(value / 60).toFixed(0)} min`;
}

// Of something that people count, a second.
export function rate(value: number): string {
  return value < 100 ? Number(value.toPrecision(3)).toString() : count(value);
}

export function joined(items: string[]): string {
  if (items.length < 2) return items.join("");
  return `${items.slice(0, -1).join(", ")} and ${items[items.length - 1]}`;
}
