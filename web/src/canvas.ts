// A canvas that is as sharp as the screen, as wide as its place, and drawn once a frame at most; and
// what pointers, wheels and keys do on one.
import { useEffect, useRef } from "preact/hooks";
import type { Theme } from "./colours";
import type { State, Store } from "./store";

export interface Drawing {
  context: CanvasRenderingContext2D;
  width: number; // in CSS pixels
  height: number;
}

// `depends`: what of the state the drawing shows.
export function useCanvas(
  store: Store,
  height: number,
  depends: (state: State) => unknown[],
  draw: (drawing: Drawing) => void,
) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef(draw);
  latest.current = draw;
  const redraw = useRef<() => void>(() => {});
  useEffect(() => {
    const element = canvas.current!;
    let frame = 0;
    const paint = () => {
      frame = 0;
      const width = element.clientWidth;
      if (width === 0) return;
      const scale = window.devicePixelRatio || 1;
      const wide = Math.round(width * scale);
      const high = Math.round(height * scale);
      if (element.width !== wide || element.height !== high) {
        element.width = wide;
        element.height = high;
      }
      const context = element.getContext("2d")!;
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, width, height);
      latest.current({ context, width, height });
    };
    redraw.current = () => {
      if (frame === 0) frame = requestAnimationFrame(paint);
    };
    const observer = new ResizeObserver(() => redraw.current());
    observer.observe(element);
    let shown = depends(store.state);
    const stop = store.listen(() => {
      const now = depends(store.state);
      if (now.every((value, i) => value === shown[i])) return;
      shown = now;
      redraw.current();
    });
    // Printers take what is there, so it must be as wide as the paper.
    window.addEventListener("beforeprint", paint);
    window.addEventListener("afterprint", paint);
    paint();
    return () => {
      cancelAnimationFrame(frame);
      observer.disconnect();
      stop();
      window.removeEventListener("beforeprint", paint);
      window.removeEventListener("afterprint", paint);
    };
  }, [store, height]);
  useEffect(() => redraw.current());
  return canvas;
}

// Where a pointer is on a canvas, in CSS pixels.
export interface Place {
  x: number;
  y: number;
  width: number; // of the canvas
  clientX: number;
  clientY: number;
}

export interface Gestures<Start> {
  begin: () => Start; // what a drag begins from
  drag: (start: Start, dx: number, dy: number, place: Place) => void;
  hover: (place: Place) => void;
  click: (place: Place) => void;
  leave: () => void;
  zoom: (factor: number, place: Place) => void; // Ctrl and the wheel
  pan?: (distance: number, place: Place) => void; // the wheel sideways
}

// What a canvas is to be given as attributes.
export function useGestures<Start>(canvas: { current: HTMLCanvasElement | null }, gestures: Gestures<Start>) {
  const dragged = useRef<{ x: number; y: number; start: Start; moved: boolean } | null>(null);
  const latest = useRef(gestures);
  latest.current = gestures;
  const place = ({ clientX, clientY }: MouseEvent): Place => {
    const bounds = canvas.current!.getBoundingClientRect();
    return { x: clientX - bounds.left, y: clientY - bounds.top, width: bounds.width, clientX, clientY };
  };
  useEffect(() => {
    const element = canvas.current!;
    const wheel = (event: WheelEvent) => {
      const { zoom, pan } = latest.current;
      if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY / 300), place(event));
      else if (pan && (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey)) pan(event.deltaX || event.deltaY, place(event));
      else return;
      event.preventDefault();
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);
  return {
    onPointerDown: (event: PointerEvent) => {
      canvas.current!.setPointerCapture(event.pointerId);
      dragged.current = { x: event.clientX, y: event.clientY, start: gestures.begin(), moved: false };
    },
    onPointerMove: (event: PointerEvent) => {
      const drag = dragged.current;
      if (!drag) return gestures.hover(place(event));
      const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
      if (Math.abs(dx) + Math.abs(dy) > 3) drag.moved = true;
      if (drag.moved) gestures.drag(drag.start, dx, dy, place(event));
    },
    onPointerUp: (event: PointerEvent) => {
      const drag = dragged.current;
      dragged.current = null;
      if (drag && !drag.moved) gestures.click(place(event));
    },
    onPointerLeave: () => gestures.leave(),
  };
}

// Does what a key stands for, unless it is the browser's.
export function onKey(event: KeyboardEvent, actions: Record<string, () => void>) {
  const action = actions[event.key];
  if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  action();
}

export function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let length = Math.floor((text.length * width) / Math.max(1, context.measureText(text).width));
  while (length > 1 && context.measureText(text.slice(0, length) + "…").width > width) --length;
  return length > 1 ? text.slice(0, length) + "…" : "";
}

// Round times for the marks of an axis.
function marks(from: number, to: number, most: number): number[] {
  const rough = (to - from) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough)!;
  const all: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) all.push(at);
  return all;
}

// Lines at round times, and above them the times, where there is room for these.
export function timeGrid(
  { context, width, height }: Drawing,
  colours: Theme,
  span: { from: number; to: number; left: number },
  axis: number, // its height; 0: no times
) {
  const { from, to, left } = span;
  context.font = font(11);
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineWidth = 1;
  for (const mark of marks(from, to, (width - left) / 110)) {
    const at = Math.round(left + ((mark - from) / (to - from)) * (width - left)) + 0.5;
    context.strokeStyle = colours.faint;
    context.beginPath();
    context.moveTo(at, axis);
    context.lineTo(at, height);
    context.stroke();
    context.fillStyle = colours.muted;
    if (axis > 0 && at > left + 24 && at < width - 24) context.fillText(axisTime(mark, to - from), at, axis / 2);
  }
}

// As precise as the marks are apart.
function axisTime(time: number, span: number): string {
  const [unit, name] = span >= 2e9 ? [1e9, "s"] : span >= 2e6 ? [1e6, "ms"] : span >= 2e3 ? [1e3, "µs"] : [1, "ns"];
  const digits = Math.max(0, Math.ceil(-Math.log10(span / 8 / unit)));
  return `${(time / unit).toFixed(Math.min(digits, 6))} ${name}`;
}

export const font = (size: number, weight = 400) =>
  `${weight} ${size}px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif`;
