// Curves over time.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { theme } from "./colours";
import * as format from "./format";
import { useStore, type Store } from "./store";

export function Plot({
  store,
  title,
  options,
  data,
}: {
  store: Store;
  title: string;
  options: (width: number) => Omit<uPlot.Options, "width" | "height">;
  data: uPlot.AlignedData;
}) {
  const place = useRef<HTMLDivElement>(null);
  const themes = useStore(store, (state) => state.theme);
  useEffect(() => {
    const element = place.current!;
    let plot: uPlot | null = null;
    const make = () => {
      const width = element.clientWidth;
      plot?.destroy();
      plot = new uPlot({ width, height: 230, ...options(width) }, data, element);
    };
    const observer = new ResizeObserver(() => plot?.width !== element.clientWidth && make());
    observer.observe(element);
    window.addEventListener("beforeprint", make);
    window.addEventListener("afterprint", make);
    make();
    return () => {
      observer.disconnect();
      window.removeEventListener("beforeprint", make);
      window.removeEventListener("afterprint", make);
      plot?.destroy();
    };
  }, [data, themes]);
  return <div class="plot" ref={place} role="img" aria-label={title} />;
}

export function axes(
  x: string,
  y: string,
  xValues: (value: number) => string,
  yValues: (value: number) => string = format.time,
): uPlot.Axis[] {
  const colours = theme();
  const style = {
    stroke: colours.muted,
    grid: { stroke: colours.faint, width: 1 },
    ticks: { stroke: colours.faint, width: 1 },
    font: '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
    labelFont: '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
    labelSize: 18,
  };
  return [
    { ...style, label: x, size: 30, values: (_, values) => values.map((value) => (value === null ? "" : xValues(value))) },
    { ...style, label: y, size: 82, values: (_, values) => values.map((value) => (value === null ? "" : yValues(value))) },
  ];
}

// Time begins at 0.
export const fromZero = { time: false, range: (_: uPlot, _low: number, high: number): [number, number] => [0, high] };
