// Several results side by side, the one that is shown below marked.
import * as format from "./format";
import type { Result } from "./result";
import { trainingOf } from "./training";
import type { TrainingAnswer } from "./types";

export function Several({ results, shown, onShow }: { results: Result[]; shown: number; onShow: (i: number) => void }) {
  const comparable = new Set(results.filter((result) => !result.raw.training).map((result) => result.raw.answer.graph)).size === 1;
  const best = Math.min(...results.filter((result) => result.isAnswer && result.raw.answer.fits).map((result) => result.time));
  // Those of which there is nothing to say are left empty.
  const answer = (text: (result: Result) => string) => (result: Result) => (result.isAnswer ? text(result) : "");
  const training = (text: (answer: TrainingAnswer) => string) => (result: Result) => (result.raw.training ? text(trainingOf(result)) : "");
  const lines: [string, (result: Result) => string][] = [
    ["command", (result) => result.raw.kind],
    ["step time", answer((result) => (result.raw.answer.step_ns ? format.time(result.raw.answer.step_ns) : ""))],
    ["period", answer((result) => (result.raw.answer.period_ns ? format.time(result.raw.answer.period_ns) : ""))],
    ["measured", (result) => (result.raw.execution ? `${result.raw.execution.step_ms.toPrecision(4)} ms` : "")],
    ["against the best here", (result) => {
      if (result.raw.training || (!comparable && result.raw.answer.fits)) return "";
      return result.raw.answer.fits && best > 0 ? format.times(result.time / best) : "does not fit";
    }],
    ["above the bound", answer((result) => {
      const { gap, optimal } = result.raw.answer;
      return result.raw.partition || gap === undefined || gap === null ? "" : optimal ? "optimal" : `≤ ${format.atMost(gap)}`;
    })],
    ["with tensors divided", answer((result) => {
      const parts = result.raw.answer.explanation?.in_parts;
      return !parts ? "" : parts.fits ? format.time(parts.step_ns) : "does not fit";
    })],
    ["devices", (result) => {
      const devices = result.raw.answer.devices ?? result.raw.cluster?.devices;
      return devices ? format.count(devices.length) : "";
    }],
    ["fullest device", answer((result) => {
      const shares = (result.raw.answer.devices ?? []).filter((d) => d.capacity_bytes !== null).map((d) => d.peak_bytes / d.capacity_bytes!);
      return shares.length > 0 ? format.percent(Math.max(...shares)) : "";
    })],
    ["cost of a step", answer((result) => result.raw.answer.rates?.cost_per_step?.toPrecision(3) ?? "")],
    ["sent between devices", answer((result) => (result.raw.answer.transfer_bytes === undefined ? "" : format.bytes(result.raw.answer.transfer_bytes)))],
    ["placed by", answer((result) => result.raw.answer.placer ?? result.raw.partition?.method ?? "")],
    ["search", answer((result) => (result.raw.answer.seconds === undefined ? "" : format.seconds(result.raw.answer.seconds)))],
    ["samples, of the expert’s step", training(({ relative_time }) => relative_time?.toFixed(3) ?? "")],
    ["samples that fit", training(({ fitting_share }) => (fitting_share === null ? "" : format.percent(fitting_share)))],
    ["steps of training", training(({ steps }) => format.count(steps))],
  ];
  return (
    <section id="several">
      <h2>Side by side</h2>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th />
              {results.map((result, i) => (
                <th class={i === shown ? "number marked" : "number"}>
                  <button aria-pressed={i === shown} onClick={() => onShow(i)}>
                    {result.raw.title}
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {lines
              .filter(([, text]) => results.some((result) => text(result) !== ""))
              .map(([name, text]) => (
                <tr>
                  <th scope="row">{name}</th>
                  {results.map((result, i) => (
                    <td class={i === shown ? "number marked" : "number"}>{text(result)}</td>
                  ))}
                </tr>
              ))}
          </tbody>
        </table>
      </div>
      <p class="hint">Below: {results[shown].raw.title}. A click on another’s name shows that one.</p>
    </section>
  );
}
