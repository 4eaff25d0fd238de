// What people ask first: what do I gain, does it fit, what limits it, what goes where, what would
// help.
import { chainColours } from "./colours";
import * as format from "./format";
import { Bar, CopyButton, Figure, Legend, Table } from "./parts";
import type { Result } from "./result";
import type { Store } from "./store";
import type { Answer, HeldModules, OneDevice, RawResult, Sensitivity, Way } from "./types";

const timeOf = (one: { step_ns?: number; period_ns?: number }) => one.period_ns ?? one.step_ns ?? 0;

export function Summary({ result, store }: { result: Result; store: Store }) {
  const why = result.raw.why_nothing_fits;
  if (why) {
    return (
      <section id="gain">
        <h2>Does it fit?</h2>
        <p>
          <strong class="bad">No placement fits:</strong> {why}.
        </p>
      </section>
    );
  }
  return (
    <>
      <Gain result={result} />
      <div class="columns">
        <Fits result={result} store={store} />
        <Limits result={result} />
      </div>
      <Where result={result} store={store} />
      <Help result={result} />
    </>
  );
}

function bestAlone(answer: Answer): OneDevice | null {
  const { fitting_device, fastest_device } = answer.explanation ?? {};
  return fitting_device ?? fastest_device ?? null;
}

function Gain({ result }: { result: Result }) {
  const { answer, text, partition, execution } = result.raw;
  const alone = bestAlone(answer);
  const { measured } = result;
  const predicted = measured ? "predicted " : "";
  const quantity = !answer.fits ? "a step, were there the memory" : predicted + (answer.period_ns ? "from one step to the next" : "step time");
  const figures = [
    <Figure id="figure-time" value={format.time(result.time)} label={quantity} />,
  ];
  if (measured) {
    figures.push(
      <Figure id="figure-measured" value={format.milliseconds(measured)} label={`measured${execution ? `, the median of ${format.counted(execution.steps, "step")}` : ""}`} />,
      <Figure id="figure-ratio" value={(execution?.predicted_ratio ?? answer.measured![0].predicted_ms / measured).toFixed(2)} label="predicted divided by measured" />,
    );
  }
  const { in_flight = 0, latency_ns } = answer.stream ?? {};
  if (in_flight > 1) {
    figures.push(
      <Figure id="figure-in-flight" value={format.count(in_flight)} label="steps in flight at a time" />,
      <Figure id="figure-latency" value={format.time(latency_ns!)} label="from a step’s entry to its end" />,
    );
  }
  if (alone && answer.fits && alone.fits) {
    figures.push(
      <Figure id="figure-gain" value={format.times(timeOf(alone) / result.time)} label={`as fast as ${alone.device} alone${predicted && ", predicted"}`} />,
    );
  }
  if (answer.gap !== undefined && answer.gap !== null && !partition) {
    figures.push(
      <Figure
        id="figure-gap"
        value={answer.optimal ? "optimal" : `≤ ${format.atMost(answer.gap)}`}
        label={answer.optimal ? "no placement that fits is faster" : "above the best that is possible"}
      />,
    );
  }
  const rates = answer.rates ?? {};
  if (rates.samples_per_second) {
    figures.push(<Figure id="figure-rate" value={format.rate(rates.samples_per_second)} label={`${predicted}samples a second`} />);
  } else if (rates.flops_per_second) {
    figures.push(<Figure id="figure-rate" value={format.perSecond(rates.flops_per_second, "FLOP/s")} label="computed" />);
  }
  if (rates.utilisation) {
    figures.push(<Figure id="figure-use" value={format.percent(rates.utilisation)} label="of the devices’ peak" />);
  }
  if (rates.cost_per_step) {
    figures.push(<Figure id="figure-cost" value={rates.cost_per_step.toPrecision(3)} label="cost of a step" />);
  }
  return (
    <section id="gain">
      <h2>What do I gain?</h2>
      <div class="figures">{figures}</div>
      {partition && <p>{partition.verdict}</p>}
      {alone && !alone.fits && (
        <p>
          One device cannot hold it: {alone.device} alone would need {format.bytes(alone.peak_bytes)} of memory.
        </p>
      )}
      {!partition && text?.gap && <p class="muted">{text.gap[0].toUpperCase() + text.gap.slice(1)}.</p>}
      {partition && <Ways result={result} />}
      {execution && <Measured result={result} />}
      {answer.measured && (
        <Table
          id="candidates"
          columns={["executed", "#measured", "#half between", "#predicted", "#ratio"]}
          rows={answer.measured.map(({ origin, measured_ms, measured_ms_quartiles, predicted_ms, failure }) =>
            measured_ms
              ? [origin, format.milliseconds(measured_ms), measured_ms_quartiles!.map(format.milliseconds).join(" and "), format.milliseconds(predicted_ms), (predicted_ms / measured_ms).toFixed(2)]
              : [`${origin}: failed: ${failure}`, "", "", format.milliseconds(predicted_ms), ""],
          )}
        />
      )}
    </section>
  );
}

// The ways to run the model that a partition was compared with.
function Ways({ result }: { result: Result }) {
  const { partition } = result.raw;
  const ways = [partition, ...(partition!.compared ?? []), partition!.on_fewer, partition!.one_device, partition!.placement];
  const known = ways.filter((way): way is Way => way !== undefined);
  const slowest = Math.max(...known.map((way) => way.step_ns));
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th>how</th>
            <th class="number">step time</th>
            <th />
            <th class="number">sent</th>
            <th>fits</th>
          </tr>
        </thead>
        <tbody>
          {known.map((way, i) => (
            <tr class={i === 0 ? "marked" : ""}>
              <td>{way.how}</td>
              <td class="number">{format.time(way.step_ns)}</td>
              <td>
                <Bar share={way.step_ns / slowest} />
              </td>
              <td class="number">{format.bytes(way.transfer_bytes)}</td>
              <td>{way.fits ? "yes" : "no"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const lossText = (loss: number | null) => loss?.toPrecision(6) ?? "not a number";

function Measured({ result }: { result: Result }) {
  const { execution } = result.raw;
  const shown = execution!.types.slice(0, 10);
  const estimated = result.raw.costs?.some((cost) => cost.source === "analytic" && cost.ops > 0);
  const { warnings, drift, losses = [] } = execution!;
  return (
    <>
      {warnings.map((warning) => (
        <p class="warning">
          <strong class="bad">Note:</strong> {warning}.
        </p>
      ))}
      <p class="muted">
        Half of the measured steps took between {execution!.step_ms_quartiles.map(format.milliseconds).join(" and ")}. With the op
        times of this very run the simulator says {format.milliseconds(execution!.oracle_ms)}: the rest of the difference is op times.
        {estimated && " They were estimated; emplace profile measures them."}
        {drift && ` The same work took ${format.percent(Math.abs(drift - 1))} ${drift < 1 ? "less" : "more"} afterwards than before.`}
        {losses.length > 0 && ` The loss was ${lossText(losses[0])} in the first step, ${lossText(losses[losses.length - 1])} in the last.`}
      </p>
      <Table
        id="measured-devices"
        columns={["device", "#busy", "#peak memory, measured", "#predicted"]}
        rows={execution!.devices.map((device) => [device.name, `${device.busy_ms.toFixed(3)} ms`, format.bytes(device.peak_bytes), format.bytes(device.predicted_peak_bytes)])}
      />
      <Table
        columns={["op type", "#ops", "#measured", "#predicted", "#ratio"]}
        rows={shown.map((type) => [
          type.type,
          format.count(type.ops),
          `${type.measured_ms.toFixed(3)} ms`,
          `${type.predicted_ms.toFixed(3)} ms`,
          type.measured_ms > 0 ? (type.predicted_ms / type.measured_ms).toFixed(2) : "",
        ])}
      />
    </>
  );
}

function Fits({ result, store }: { result: Result; store: Store }) {
  const { answer, cluster } = result.raw;
  if (!answer.devices) return null;
  const short = answer.devices.filter((device) => device.capacity_bytes !== null && device.peak_bytes > device.capacity_bytes);
  const id = (name: string) => cluster?.devices.findIndex((device) => device.name === name) ?? -1;
  return (
    <section id="fits">
      <h2>Does it fit?</h2>
      <p>
        {answer.fits ? (
          <>Yes. Peak memory of each device, of what it has:</>
        ) : (
          <strong class="bad">
            No: {format.joined(short.map((d) => `${d.name} lacks ${format.bytes(d.peak_bytes - d.capacity_bytes!)}`))}.
          </strong>
        )}
      </p>
      <table class="plain">
        <tbody>
          {answer.devices.map((device) => (
            <tr
              onMouseEnter={() => id(device.name) >= 0 && store.hover({ type: "device", id: id(device.name) })}
              onMouseLeave={() => store.hover(null)}
            >
              <th scope="row">
                {id(device.name) >= 0 ? (
                  <button class="text" onClick={() => store.select({ type: "device", id: id(device.name) })}>
                    {device.name}
                  </button>
                ) : (
                  device.name
                )}
              </th>
              <td class="number" data-peak={device.name}>{format.bytes(device.peak_bytes)}</td>
              <td class="wide">
                {device.capacity_bytes !== null && <Bar share={device.peak_bytes / device.capacity_bytes} />}
              </td>
              <td class="number muted">of {format.bytes(device.capacity_bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const kChainParts = [
  ["compute_ns", "computing"],
  ["transfer_ns", "in transfers"],
  ["device_wait_ns", "waiting for busy devices"],
  ["channel_wait_ns", "waiting for busy links"],
  ["idle_ns", "in gaps"],
] as const;

// What would make it faster, in one sentence; the same thresholds as the terminal's.
function verdict(result: Result): string {
  const { answer } = result.raw;
  const { chain, loads, contents } = answer.explanation!;
  const step = answer.step_ns;
  const busiest = loads.find((load) => load.kind === "device");
  if (answer.optimal) return "No placement that fits is faster.";
  if (answer.period_ns) {
    return `${loads[0].kind === "device" ? "Device" : "Link"} ${loads[0].name} sets the period: ${format.time(loads[0].load_ns)} of work a step.`;
  }
  if (contents.length === 1) return "One device does everything, so its own speed is the limit.";
  const least = Math.min(...(answer.devices ?? []).map((device) => device.busy_ns ?? 0));
  if (answer.devices && least >= 0.85 * step && chain.compute_ns < 0.75 * step) {
    return `All devices work at least ${format.percent(least / step)} of the step: faster ones, or more of them, would help.`;
  }
  if (busiest && busiest.load_ns >= 0.9 * step) {
    return `${busiest.name} works ${format.percent(busiest.load_ns / step)} of the step: little but moving work from it could help.`;
  }
  const moving = chain.transfer_ns + chain.channel_wait_ns;
  if (moving >= step / 4) {
    return `Moving tensors between devices takes ${format.percent(moving / step)} of it: faster links, or fewer cuts, would help.`;
  }
  if (chain.compute_ns >= 0.75 * step) {
    return "These ops need each other’s results, so more devices would not make them faster.";
  }
  const busy = (answer.devices ?? []).reduce((sum, device) => sum + (device.busy_ns ?? 0), 0);
  return (
    `On average ${(busy / step).toFixed(1)} of ${contents.length} devices work at a time` +
    (busiest ? `; ${busiest.name}, the busiest, works ${format.percent(busiest.load_ns / step)} of the step.` : ".")
  );
}

function Limits({ result }: { result: Result }) {
  const { answer } = result.raw;
  const { explanation } = answer;
  if (!explanation) return null;
  const parts = kChainParts.map(([key, name]) => ({ name, time: explanation.chain[key] }));
  const step = Math.max(1, answer.step_ns);
  const busy = (answer.devices ?? []).filter((device) => device.busy_ns !== undefined);
  return (
    <section id="limits">
      <h2>What limits it?</h2>
      <p>{verdict(result)}</p>
      {(result.raw.text?.stream ?? []).map((sentence) => (
        <p class="muted">{sentence[0].toUpperCase() + sentence.slice(1)}.</p>
      ))}
      {!answer.period_ns && (
        <>
          <p class="muted">How the chain of ops that ends last spends its {format.time(answer.step_ns)}:</p>
          <div class="stack" role="img" aria-label={parts.map((p) => `${p.name} ${format.percent(p.time / step)}`).join(", ")}>
            {parts.map(
              (part, i) =>
                part.time > 0 && (
                  <i
                    style={{ width: `${(100 * part.time) / step}%`, background: chainColours[i] }}
                    title={`${part.name} ${format.time(part.time)}`}
                  />
                ),
            )}
          </div>
          <Legend
            names={parts.map((part) => `${part.name} ${format.time(part.time)} (${format.percent(part.time / step)})`)}
            used={parts.map((part) => part.time > 0)}
            colour={(i) => chainColours[i]}
          />
        </>
      )}
      {busy.length > 0 && (
        <table class="plain">
          <tbody>
            {busy.map((device) => (
              <tr>
                <th scope="row">{device.name}</th>
                <td class="wide">
                  <Bar share={device.busy_ns! / result.time} />
                </td>
                <td class="number">{format.percent(device.busy_ns! / result.time)} busy</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function fromTo(held: HeldModules): string {
  if (held.count === 1) return held.first;
  const digits = held.last.match(/\d+$/)?.[0] ?? "";
  const stem = held.last.slice(0, held.last.length - digits.length);
  return digits && held.first.startsWith(stem) ? `${held.first}–${digits}` : `${held.first} … ${held.last}`;
}

function Held({ modules, store }: { modules: HeldModules[]; store: Store }) {
  const shown = [...modules].sort((a, b) => b.work - a.work).slice(0, 10);
  return (
    <>
      {modules
        .filter((held) => shown.includes(held))
        .map((held, i) => (
          <>
            {i > 0 && ", "}
            <button
              class="text"
              onMouseEnter={() => store.hover({ type: "module", path: held.first })}
              onMouseLeave={() => store.hover(null)}
              onClick={() => store.select({ type: "module", path: held.first })}
            >
              {fromTo(held) || "(no module)"}
            </button>
            {held.share < 0.95 && <span class="muted share"> {format.percent(held.share)}</span>}
          </>
        ))}
      {modules.length > shown.length && <span class="muted"> and {modules.length - shown.length} more</span>}
    </>
  );
}

function Where({ result, store }: { result: Result; store: Store }) {
  const { explanation } = result.raw.answer;
  if (!explanation || explanation.contents.length === 0) return null;
  return (
    <section id="where">
      <h2>What goes where?</h2>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>device</th>
              <th class="number">of the work</th>
              <th class="number">weights and state</th>
              <th>parts of the model (a share where it is not all of it)</th>
            </tr>
          </thead>
          <tbody>
            {explanation.contents.map((held) => (
              <tr>
                <th scope="row">{held.device}</th>
                <td class="number">{format.percent(held.work)}</td>
                <td class="number">{format.bytes(held.resident_bytes)}</td>
                <td>
                  <Held modules={held.modules} store={store} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

// The last --scale of a resource counts.
function whatIf({ command, scale = {} }: RawResult, { resource, factor }: Sensitivity): string | null {
  if (resource === "devices") {  // one more of a preset of equal devices
    const equal = /^(emplace place .*(?:-c|--cluster)[ =])(\d+)(x[a-z]\w*(?: .*)?)$/;
    return equal.test(command) ? command.replace(equal, (_, before: string, count: string, after: string) => before + (Number(count) + 1) + after) : null;
  }
  if (!/^emplace (place|compare|simulate) /.test(command)) return null;
  return `${command} --scale ${resource}=${factor * (scale[resource] ?? 1)}`;
}

function Help({ result }: { result: Result }) {
  const { answer, divide } = result.raw;
  const { sensitivities, in_parts, batches } = answer.explanation ?? {};
  if (!sensitivities && !in_parts && !batches) return null;
  const now = sensitivities ? timeOf(sensitivities) : result.time;
  const { kind } = result.raw;
  const searched = !["simulate", "run", "partition"].includes(kind);
  const gain = (time: number, fits: boolean) => {
    if (!fits) return <span class="bad">does not fit</span>;
    if (sensitivities ? !sensitivities.fits : !answer.fits) return "fits";
    return now / time < 1.005 ? <span class="muted">nothing</span> : `${format.times(now / time)} as fast`;
  };
  return (
    <section id="help">
      <h2>What would help?</h2>
      {sensitivities && (
        <p class="muted">
          Each simulated{searched ? ", after a short search for the best placement there" : ` with this ${kind === "partition" ? kind : "placement"}`}, against{" "}
          {format.time(now)}
          {!searched ? " as predicted." : now < 0.995 * result.time ? ", which the same search finds as things are: a longer search pays, too." : " now."}
        </p>
      )}
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>with</th>
              <th class="number">{answer.period_ns ? "period" : "step time"}</th>
              <th />
              <th>gain</th>
              <th />
            </tr>
          </thead>
          <tbody>
            {sensitivities?.list.map((change) => {
              const again = whatIf(result.raw, change);
              return (
                <tr>
                  <td>{change.what ?? `${change.resource} × ${change.factor}`}</td>
                  <td class="number" data-what={change.resource}>{format.time(timeOf(change))}</td>
                  <td>
                    <Bar share={Math.min(1, timeOf(change) / now)} />
                  </td>
                  <td>{gain(timeOf(change), change.fits)}</td>
                  <td>{again && <CopyButton text={again} />}</td>
                </tr>
              );
            })}
            {in_parts && (
              <tr>
                <td>tensors divided ({in_parts.method})</td>
                <td class="number">{format.time(in_parts.step_ns)}</td>
                <td>
                  <Bar share={Math.min(1, in_parts.step_ns / now)} />
                </td>
                <td>{gain(in_parts.step_ns, in_parts.fits)}</td>
                <td>{divide && <CopyButton text={divide} />}</td>
              </tr>
            )}
          </tbody>
        </table>
      </div>
      {batches && (
        <p>
          Batches that were tried: {format.joined(batches.tried.map((b) => `${b.batch} (${b.fits ? "fits" : "does not fit"})`))}.
        </p>
      )}
    </section>
  );
}
