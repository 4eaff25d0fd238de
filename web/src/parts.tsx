// Small things that several views are made of.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { ColourBy } from "./result";

export interface TooltipText {
  x: number;
  y: number;
  title: string;
  lines: string[];
}

// Beside the pointer, and within the window.
export function Tooltip({ x, y, title, lines }: TooltipText) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const { offsetWidth: width, offsetHeight: height } = box.current!;
    const left = x + 14 + width > window.innerWidth ? Math.max(4, x - 14 - width) : x + 14;
    const top = y + 16 + height > window.innerHeight ? Math.max(4, y - 12 - height) : y + 16;
    box.current!.style.transform = `translate(${left}px, ${top}px)`;
  });
  return (
    <div class="tooltip" ref={box} role="status">
      <strong>{title}</strong>
      {lines.map((line) => (
        <div>{line}</div>
      ))}
    </div>
  );
}

export function Legend({
  names,
  used,
  colour,
}: {
  names: string[];
  used?: boolean[];
  colour: (i: number) => string;
}) {
  return (
    <ul class="legend">
      {names.map(
        (name, i) =>
          (used?.[i] ?? true) && (
            <li>
              <i style={{ background: colour(i) }} />
              {name}
            </li>
          ),
      )}
    </ul>
  );
}

export function Bar({ share, colour, title }: { share: number; colour?: string; title?: string }) {
  const width = Math.min(1, Math.max(0, share));
  return (
    <span class="bar" title={title} aria-hidden="true">
      <i style={{ width: `${100 * width}%`, background: colour }} class={share > 1 ? "over" : ""} />
    </span>
  );
}

export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages from disk may not be let near the clipboard otherwise.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

export function CopyButton({ text, label = "copy command" }: { text: string; label?: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(""), 1500);
    return () => clearTimeout(timer);
  }, [said]);
  return (
    <button
      class="copy"
      title={text}
      onClick={async () => setSaid((await copy(text)) ? "copied" : "could not copy")}
    >
      <span aria-live="polite">{said || label}</span>
    </button>
  );
}

export function download(name: string, content: string, type: string) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

export function Figure({ value, label, id }: { value: string; label: string; id: string }) {
  return (
    <div class="figure">
      <b id={id}>{value}</b>
      <span>{label}</span>
    </div>
  );
}

export function ColourChoice({ choices, by, onChange }: { choices: ColourBy[]; by: ColourBy; onChange: (by: ColourBy) => void }) {
  return (
    <label>
      Colour by{" "}
      <select value={by} onChange={(event) => onChange(event.currentTarget.value as ColourBy)}>
        {choices.map((choice) => (
          <option value={choice}>{choice === "type" ? "op type" : choice}</option>
        ))}
      </select>
    </label>
  );
}

export function ZoomButtons({ onZoom, onAll, all }: { onZoom: (factor: number) => void; onAll: () => void; all: string }) {
  return (
    <span class="buttons">
      <button onClick={() => onZoom(1.8)} title="Zoom in (+)" aria-label="Zoom in">+</button>
      <button onClick={() => onZoom(1 / 1.8)} title="Zoom out (−)" aria-label="Zoom out">−</button>
      <button onClick={onAll} title={`${all} (0)`}>all</button>
    </span>
  );
}

// Columns with a # before their names are numbers.
export function Table({ id, columns, rows }: { id?: string; columns: string[]; rows: ComponentChildren[][] }) {
  const kind = (i: number) => (columns[i][0] === "#" ? "number" : "");
  return (
    <div class="scroll">
      <table id={id}>
        <thead>
          <tr>
            {columns.map((name, i) => (
              <th class={kind(i)}>{name.replace("#", "")}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {row.map((cell, i) => (
                <td class={kind(i)}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// A table whose columns can be sorted by.
export interface Column<Row> {
  name: string;
  number?: boolean;
  value: (row: Row) => string | number | null;
  show?: (row: Row) => ComponentChildren;
}

export function SortedTable<Row>({
  rows,
  columns,
  first,
  marked,
}: {
  rows: Row[];
  columns: Column<Row>[];
  first: number; // the column that it is sorted by
  marked?: (row: Row) => boolean;
}) {
  const [by, setBy] = useState(first);
  const [down, setDown] = useState(false);
  const value = columns[by].value;
  const sorted = [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
    return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
  });
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            {columns.map((column, i) => (
              <th class={column.number ? "number" : ""} aria-sort={i === by ? (down ? "descending" : "ascending") : "none"}>
                <button
                  onClick={() => {
                    setDown(i === by ? !down : false);
                    setBy(i);
                  }}
                >
                  {column.name}
                  <span class="arrow">{i === by ? (down ? " ▾" : " ▴") : ""}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.map((row) => (
            <tr class={marked?.(row) ? "marked" : ""}>
              {columns.map((column) => (
                <td class={column.number ? "number" : ""}>{column.show ? column.show(row) : column.value(row)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
