// The map of the model, and what pointers and keys do on it.
import { useMemo, useState } from "preact/hooks";
import { onKey, useCanvas, useGestures, type Place } from "./canvas";
import { categoryColour } from "./colours";
import { flowsOf, hit, isOpen, Layout, lineText, textOf, type Found, type View } from "./map_layout";
import { kReach, MapPainter } from "./map_painter";
import { stepsOf } from "./map_steps";
import { ColourChoice, Legend, Tooltip, ZoomButtons, type TooltipText } from "./parts";
import type { ColourBy, Result } from "./result";
import type { Item, State, Store } from "./store";

const kHeight = 520;

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
  const lineAt = ({ x, y }: Place) =>
    lines ? layout.lines.find(({ points }) => points.some(([px, py]) => Math.hypot(px - x, py - y) <= kReach)) : undefined;
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
      const line = found.op < 0 ? lineAt(place) : undefined;
      store.hover(line ? null : itemOf(found));
      const text = line ? lineText(layout, line) : found.op < 0 && found.box <= 0 ? null : textOf(layout, found, by);
      setTip(text && { x: place.clientX, y: place.clientY, ...text });
    },
    click: (place) => store.select(itemOf(find(place))),
    leave: () => {
      setTip(null);
      store.hover(null);
    },
    zoom: (factor, { x, y }) => zoom(factor, x, y),
  });
  const steps = stepsOf(layout, store);
  const choose = (found: Found | undefined) => {
    if (!found) return;
    store.set({ selected: itemOf(found) });
    const { clientWidth } = canvas.current!;
    const now = current(clientWidth);
    const outer = found.op < 0 ? Math.max(0, map.parent[found.box]) : found.box;
    const [x, y] = [map.x[found.box] * now.scale + now.x, map.y[found.box] * now.scale + now.y];
    if (x < 0 || y < 0 || x > clientWidth || y > kHeight || !isOpen(layout, outer, now.scale)) showBox(outer);
  };
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
    n: () => choose(steps.beside(1)),
    p: () => choose(steps.beside(-1)),
    Enter: () => choose(steps.inside()),
    Backspace: () => choose(steps.around()),
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
        aria-label="Map of the model. Arrow keys move, plus and minus zoom, 0 shows all; n and p select what is beside, Enter what is inside, Backspace what is around."
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
