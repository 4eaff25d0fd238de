// What all views share: the part of the time that is in view, what is selected, what the pointer is
// over. Views listen and draw themselves again.
import { useEffect, useState } from "preact/hooks";

export type Item =
  | { type: "op"; id: number; step?: number } // of a stream, in all steps or in one
  | { type: "step"; id: number }
  | { type: "transfer"; id: number }
  | { type: "module"; path: string }
  | { type: "device"; id: number };

export interface State {
  from: number; // of the time in view, in ns
  to: number;
  selected: Item | null;
  hovered: Item | null;
  search: string;
  theme: number; // counts changes of light and dark, after which all is drawn again
}

export class Store {
  state: State;
  private listeners = new Set<() => void>();

  constructor(readonly end: number) {
    this.state = { from: 0, to: end, selected: null, hovered: null, search: "", theme: 0 };
  }

  set(change: Partial<State>) {
    for (const key of Object.keys(change) as (keyof State)[]) {
      if (this.state[key] !== change[key]) {
        this.state = { ...this.state, ...change };
        this.listeners.forEach((listener) => listener());
        return;
      }
    }
  }

  select(item: Item | null) {
    this.set({ selected: same(item, this.state.selected) ? null : item });
  }

  hover(item: Item | null) {
    if (!same(item, this.state.hovered)) this.set({ hovered: item });
  }

  // The part of the time that is seen stays within the step and is never less than a microsecond's
  // thousandth part.
  look(from: number, to: number) {
    const length = Math.min(Math.max(to - from, Math.max(this.end / 1e7, 1)), this.end);
    const begin = Math.min(Math.max(from, 0), this.end - length);
    this.set({ from: begin, to: begin + length });
  }

  zoom(factor: number, around?: number) {
    const { from, to } = this.state;
    const centre = around ?? (from + to) / 2;
    this.look(centre - (centre - from) / factor, centre + (to - centre) / factor);
  }

  pan(part: number) {
    const { from, to } = this.state;
    this.look(from + part * (to - from), to + part * (to - from));
  }

  // Brings a time into view, with something around it.
  show(start: number, length: number) {
    const { from, to } = this.state;
    const visible = to - from;
    if (start >= from && start + length <= to && length > visible / 200) return;
    const span = Math.max(length * 12, this.end / 2000, 1);
    this.look(start + length / 2 - span / 2, start + length / 2 + span / 2);
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

// Beside a module, a device or a step the rest steps back; ops and transfers are outlined.
export function aside({ hovered, selected }: State): Item | null {
  return [hovered, selected].find((item) => item && item.type !== "op" && item.type !== "transfer") ?? null;
}

export function same(a: Item | null, b: Item | null): boolean {
  return a === b || (a !== null && b !== null && key(a) === key(b));
}

function key(item: Item): string {
  if (item.type === "module") return `module ${item.path}`;
  return `${item.type} ${item.id}` + (item.type === "op" && item.step !== undefined ? ` ${item.step}` : "");
}

// Renders the component again when what it picks of the state changes.
export function useStore<T>(store: Store, pick: (state: State) => T): T {
  const [value, setValue] = useState(() => pick(store.state));
  useEffect(() => {
    const update = () => setValue(() => pick(store.state));
    update();
    return store.listen(update);
  }, [store]);
  return value;
}
