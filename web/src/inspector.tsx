// What is selected, in words, with the way to its neighbours.
import { opLine, stepLines, transferLines, waitLines } from "./explain";
import * as format from "./format";
import type { Result } from "./result";
import { useStore, type Item, type Store } from "./store";

export function Inspector({ result, store }: { result: Result; store: Store }) {
  const selected = useStore(store, (state) => state.selected);
  return (
    <aside class={selected ? "inspector open" : "inspector"} aria-live="polite" aria-label="What is selected">
      {selected && (
        <>
          <button class="close" aria-label="Close" onClick={() => store.set({ selected: null })}>
            ×
          </button>
          <Details result={result} store={store} item={selected} />
        </>
      )}
    </aside>
  );
}

function Links({ label, ops, result, store }: { label: string; ops: number[]; result: Result; store: Store }) {
  const kShown = 8;
  const all = [...new Set(ops)];
  if (all.length === 0) return null;
  return (
    <p>
      <span class="muted">{label} </span>
      {all.slice(0, kShown).map((op, i) => (
        <>
          {i > 0 && ", "}
          <button
            class="text"
            onMouseEnter={() => store.hover({ type: "op", id: op })}
            onMouseLeave={() => store.hover(null)}
            onClick={() => {
              store.set({ selected: { type: "op", id: op } });
              store.show(result.step.start[op], result.step.length[op]);
            }}
          >
            {result.raw.ops!.name[op]}
          </button>
        </>
      ))}
      {all.length > kShown && <span class="muted"> and {format.count(all.length - kShown)} more</span>}
    </p>
  );
}

// The op in other steps of a stream.
function Occurrences({ result, store, op, shown }: { result: Result; store: Store; op: number; shown: number }) {
  return (
    <p class="occurrences">
      <span class="muted">starts in step </span>
      {result.raw.steps!.map(
        ({ start, length }, step) =>
          start[op] < result.end && (
            <>
              {step > 0 && ", "}
              <button
                class="text"
                aria-current={step === shown}
                onClick={() => {
                  store.set({ selected: { type: "op", id: op, step } });
                  store.show(start[op], length[op]);
                }}
              >
                {step + 1}
              </button>
              {` at ${format.time(start[op])}`}
            </>
          ),
      )}
    </p>
  );
}

function Details({ result, store, item }: { result: Result; store: Store; item: Item }) {
  const { ops, cluster, readers } = result.raw;
  if (item.type === "step") {
    return (
      <>
        <h3>Step {item.id + 1}</h3>
        {stepLines(result, item.id).map((line) => (
          <p>{line}</p>
        ))}
      </>
    );
  }
  if (item.type === "op") {
    const step = item.step ?? 0;
    const start = result.raw.steps![step].start[item.id];
    const length = result.raw.steps![step].length[item.id];
    const module = result.moduleOf(item.id);
    return (
      <>
        <h3>{ops!.name[item.id]}</h3>
        <p>{opLine(result, item.id)}</p>
        <p>
          {result.isStream && `in step ${step + 1} `}
          {length > 0 ? `starts at ${format.time(start)}, takes ${format.time(length)}` : `takes no time, at ${format.time(start)}`}; writes{" "}
          {format.bytes(ops!.bytes[item.id])}
          {result.raw.cuts && result.raw.cuts.of_op[item.id] >= 0 && `, cut: ${result.raw.cuts.names[result.raw.cuts.of_op[item.id]]}`}
        </p>
        {waitLines(result, item.id, step).map((line) => (
          <p class="muted">{line}</p>
        ))}
        {result.isStream && <Occurrences result={result} store={store} op={item.id} shown={step} />}
        <Links label="reads from" ops={ops!.inputs[item.id]} result={result} store={store} />
        <Links label="read by" ops={result.readersOf(item.id)} result={result} store={store} />
        <p class="buttons">
          <button onClick={() => store.show(start, length)}>show in the timeline</button>
          {module && <button onClick={() => store.set({ selected: { type: "module", path: module } })}>its module</button>}
        </p>
      </>
    );
  }
  if (item.type === "transfer") {
    const { transfers } = result;
    return (
      <>
        <h3>{ops!.name[transfers.op[item.id]]}, sent</h3>
        {transferLines(result, transfers, item.id).map((line) => (
          <p>{line}</p>
        ))}
        <Links label="made by" ops={[transfers.op[item.id]]} result={result} store={store} />
        <Links label="read by" ops={readers?.[item.id] ?? []} result={result} store={store} />
      </>
    );
  }
  const inside: number[] = [];
  const concerns = result.concerns(item);
  for (let op = 0; op < result.numOps; ++op) if (concerns(op)) inside.push(op);
  const time = inside.reduce((sum, op) => sum + result.step.length[op], 0);
  const share = new Map<number, number>();
  for (const op of inside) share.set(ops!.device[op], (share.get(ops!.device[op]) ?? 0) + result.step.length[op]);
  return (
    <>
      <h3>{item.type === "device" ? cluster!.devices[item.id].name : item.path}</h3>
      <p>
        {item.type === "device" ? `${cluster!.devices[item.id].kind}, ${format.bytes(cluster!.devices[item.id].memory)}; ` : ""}
        {format.counted(inside.length, "op")}, {format.time(time)} of work
      </p>
      {item.type === "module" && (
        <p>
          {format.joined(
            [...share]
              .sort((a, b) => b[1] - a[1])
              .map(([device, part]) => `${cluster!.devices[device].name} ${format.percent(time > 0 ? part / time : 0)}`),
          )}
        </p>
      )}
      <Links
        label="longest ops"
        ops={inside.sort((a, b) => result.step.length[b] - result.step.length[a]).slice(0, 5)}
        result={result}
        store={store}
      />
    </>
  );
}
