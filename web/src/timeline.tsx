// The timeline: a row for each device and each channel in use, slices for ops and transfers; of a
// stream, also a line for each step in flight.
import { useMemo, useState } from "preact/hooks";
import { onKey, useCanvas, useGestures, type Place } from "./canvas";
import { categoryColour } from "./colours";
import { before, opLine, stepLines, transferLines, waitLines } from "./explain";
import * as format from "./format";
import { ColourChoice, Legend, Tooltip, ZoomButtons, type TooltipText } from "./parts";
import type { ColourBy, Result, Row } from "./result";
import { useStore, type Item, type Store } from "./store";
import { StreamWords } from "./stream";
import { labelsIn, Painter, placeRows } from "./timeline_painter";

export function Timeline({ result, store }: { result: Result; store: Store }) {
  const choices = result.colourChoices(false);
  const [by, setBy] = useState<ColourBy>(choices[0]);
  const [chain, setChain] = useState(true);
  const [links, setLinks] = useState(true);
  const [tip, setTip] = useState<TooltipText | null>(null);
  const { rows, height } = useMemo(() => placeRows(result, links), [result, links]);
  const colouring = result.colouring(by);
  const painter = new Painter(result, store, rows, by, chain);
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
    n: () => along(result, store, 1),
    p: () => along(result, store, -1),
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
        <ZoomButtons
          onZoom={(factor) => store.zoom(factor)}
          onAll={() => store.look(0, store.end)}
          all={result.isStream ? "All that is known" : "The whole step"}
        />
      </div>
      {result.isStream && <StreamWords result={result} />}
      <div class="scroll">
        <canvas
          ref={canvas}
          class="drag"
          style={{ height: `${height}px` }}
          tabIndex={0}
          role="application"
          aria-label={`Timeline. Arrow keys move, plus and minus zoom, 0 shows all, n and p go ${result.isStream ? "from step to step" : "along the critical chain"}.`}
          {...gestures}
          onKeyDown={(event) => onKey(event, keys)}
        />
      </div>
      <Legend names={colouring.names} used={usedCategories(result, by)} colour={categoryColour} />
      <p class="hint">
        Drag to move, Ctrl + wheel or + and − to zoom, click to select.
        {result.raw.chain && " The line along the rows is the critical chain: what the end of the step waited for. "}
        {result.isStream && " Click a step to see it alone; a selected op is marked in every step."}
        {result.isStream && by === "step" && result.raw.ops!.phase.some((phase) => phase > 0) && " Paler: backward ops and updates."}
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

function itemOf(row: Row, index: number, result: Result): Item {
  if (row.kind === "step") return { type: "step", id: row.id[index] };
  const step = result.isStream ? row.step[index] : undefined;
  if (row.kind === "device") return { type: "op", id: row.id[index], step };
  // Transfers of further steps, and measured ones, are only known by what they carry.
  if (row.measured || result.isStream) return { type: "op", id: result.opOf(row, index), step };
  return { type: "transfer", id: row.id[index] };
}

function textOf(result: Result, row: Row, index: number): Omit<TooltipText, "x" | "y"> {
  if (row.kind === "step") return { title: `Step ${row.id[index] + 1}`, lines: stepLines(result, row.id[index]) };
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
  else lines.push(...waitLines(result, op, row.step[index]));
  const real = result.raw.measured;
  if (real && !row.measured) lines.push(`measured ${format.time(real.start[op])} + ${format.time(real.length[op])}`);
  return { title, lines };
}

// To the next op on the critical chain; of a stream, to the next step.
function along(result: Result, store: Store, direction: number) {
  const { chain, stream } = result.raw;
  const type = stream ? "step" : "op";
  const all = stream ? [...stream.finished.keys()] : (chain?.op ?? []).filter((_, i) => chain!.kind[i] === 0);
  const { selected } = store.state;
  const at = selected?.type === type ? all.indexOf(selected.id) : -1;
  const next = all[at < 0 ? (direction > 0 ? 0 : all.length - 1) : at + direction];
  if (next === undefined) return;
  store.set({ selected: { type, id: next } });
  if (stream) store.show(stream.entered[next], stream.finished[next] - stream.entered[next]);
  else store.show(result.step.start[next], result.step.length[next]);
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
