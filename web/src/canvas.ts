// A canvas that is as sharp as the screen, as wide as its place, and drawn once a frame at most.
import { useEffect, useRef } from "preact/hooks";
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

export function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let length = Math.floor((text.length * width) / Math.max(1, context.measureText(text).width));
  while (length > 1 && context.measureText(text.slice(0, length) + "…").width > width) --length;
  return length > 1 ? text.slice(0, length) + "…" : "";
}

// Round times for the marks of an axis.
export function marks(from: number, to: number, most: number): number[] {
  const rough = (to - from) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough)!;
  const all: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) all.push(at);
  return all;
}

export const font = (size: number, weight = 400) =>
  `${weight} ${size}px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif`;
