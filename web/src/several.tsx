// Several results side by side, the one that is shown below marked.
import { readWith } from "./asked";
import * as format from "./format";
import type { Result } from "./result";
import { trainingOf } from "./training";
import type { TrainingAnswer } from "./types";

// What a time is of: those of other work are not compared. Where modules are kept whole, or
// gradients with their ops, it is the same work.
function workOf({ raw }: Result): string {
  const { graph, model = "", made_with, period_ns } = raw.answer;
  const { granularity, colocate_gradients, ...work } = made_with ?? {};
  return JSON.stringify([graph, model.startsWith("zoo:") && model, work, period_ns === undefined]);
}

// Where they are the same, with what differs.
function titlesOf(results: Result[]): string[] {
  const facts = ({ raw: { answer } }: Result) => [...readWith(answer), ...(answer.period_ns ? ["as a stream"] : []), answer.model, answer.placer];
  return results.map((result) => {
    const { title } = result.raw;
    const others = results.filter((other) => other !== result && other.raw.title === title);
    const own = facts(result).filter((fact) => fact && others.some((other) => !facts(other).includes(fact)));
    return [title, ...own].join(", ");
  });
}

export function Several({ results, shown, onShow }: { results: Result[]; shown: number; onShow: (i: number) => void }) {
  const titles = titlesOf(results);
  const comparable = new Set(results.filter((result) => result.isAnswer).map(workOf)).size === 1;
  const best = Math.min(...results.filter((result) => result.isAnswer && result.raw.answer.fits).map((result) => result.time));
  // Those of which there is nothing to say are left empty.
  const answer = (text: (result: Result) => string) => (result: Result) => (result.isAnswer ? text(result) : "");
  const training = (text: (answer: TrainingAnswer) => string) => (result: Result) => (result.raw.training ? text(trainingOf(result)) : "");
  const lines: [string, (result: Result) => string][] = [
    ["command", (result) => result.raw.kind],
    ["read with", (result) => readWith(result.raw.answer).join(", ")],
    ["step time", answer((result) => (result.raw.answer.step_ns ? format.time(result.raw.answer.step_ns) : ""))],
    ["period", answer((result) => (result.raw.answer.period_ns ? format.time(result.raw.answer.period_ns) : ""))],
    ["measured", ({ measured }) => (measured ? format.milliseconds(measured) : "")],
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
              {titles.map((title, i) => (
                <th class={i === shown ? "number marked" : "number"}>
                  <button aria-pressed={i === shown} onClick={() => onShow(i)}>
                    {title}
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
      <p class="hint">Below: {titles[shown]}. A click on another’s name shows that one.</p>
    </section>
  );
}
