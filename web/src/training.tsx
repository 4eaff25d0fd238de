// How a policy was trained: what came of it, and its curves.
import { useState } from "preact/hooks";
import uPlot from "uplot";
import { categoryColour } from "./colours";
import * as format from "./format";
import { Figure } from "./parts";
import { axes, Plot } from "./plot";
import type { Result } from "./result";
import type { Store } from "./store";
import type { TrainingAnswer } from "./types";

export const trainingOf = (result: Result) => result.raw.answer as unknown as TrainingAnswer;

export function Training({ result, store }: { result: Result; store: Store }) {
  const answer = trainingOf(result);
  const { relative_time: time, fitting_share: share } = answer;
  return (
    <>
      <section id="gain">
        <h2>What was learned?</h2>
        <div class="figures">
          {time !== null && <Figure id="figure-relative" value={time.toFixed(3)} label="times the expert’s step time, in the last step of training" />}
          {share !== null && <Figure id="figure-fitting" value={format.percent(share)} label="of its samples fit" />}
          <Figure id="figure-tasks" value={format.count(answer.tasks)} label="graphs on clusters" />
          <Figure id="figure-steps" value={format.count(answer.steps)} label="steps of training" />
          <Figure id="figure-evaluations" value={format.count(answer.evaluations)} label="placements evaluated" />
          <Figure id="figure-seconds" value={format.seconds(answer.seconds)} label="in all" />
        </div>
        <p class="muted">
          {answer.finished ? "" : "It was stopped before the last step. "}
          Samples are placements as the policy draws them, on the graphs that it is trained on; below 1 they are faster than the expert’s placement.
        </p>
      </section>
      {(result.raw.training?.step?.length ?? 0) > 1 && <Curves result={result} store={store} />}
    </>
  );
}

function Curves({ result, store }: { result: Result; store: Store }) {
  const { step, likelihood, relative_time, fitting_share } = result.raw.training!;
  const known = (values?: (number | null)[]) => values?.some((value) => value !== null) ?? false;
  return (
    <section id="searches">
      <h2>Learning curves</h2>
      {known(relative_time) && (
        <Curve store={store} title="Step time of samples, in multiples of the expert’s" steps={step!} values={relative_time!} colour={0} />
      )}
      {known(fitting_share) && (
        <Curve store={store} title="Share of samples that fit" steps={step!} values={fitting_share!} colour={2} show={format.percent} share />
      )}
      {known(likelihood) && <Curve store={store} title="Likelihood of the examples that are imitated" steps={step!} values={likelihood!} colour={1} share />}
    </section>
  );
}

function Curve({
  store,
  title,
  steps,
  values,
  colour,
  show = (value) => Number(value.toPrecision(3)).toString(),
  share = false,
}: {
  store: Store;
  title: string;
  steps: number[];
  values: (number | null)[];
  colour: number;
  show?: (value: number) => string;
  share?: boolean; // from 0 to 1
}) {
  const [data] = useState(() => [steps, values, smoothed(values)] as uPlot.AlignedData);
  const known = values.filter((value) => value !== null);
  const wide = !share && Math.max(...known) > 10 * Math.min(...known);
  const whole = Array.from({ length: 24 }, (_, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3));
  const line = (label: string, width: number, faint: string) => ({
    label,
    stroke: categoryColour(colour) + faint,
    width,
    points: { show: false },
    value: (_: uPlot, value: number | null) => (value === null ? "–" : show(value)),
  });
  return (
    <>
      <h3>{title}</h3>
      <Plot
        store={store}
        title={title}
        options={() => ({
          scales: { x: { time: false }, y: wide ? { distr: 3 } : share ? { range: [0, 1] } : {} },
          axes: axes("step", "", (value) => format.count(value), show).map((axis, i) => (i === 0 ? { ...axis, incrs: whole } : axis)),
          series: [
            { label: "step", value: (_: uPlot, value: number | null) => (value === null ? "" : format.count(value)) },
            line("each step", 1, "66"),
            line("smoothed", 2, ""),
          ],
        })}
        data={data}
      />
    </>
  );
}

// The mean of those around each, a twentieth of all.
function smoothed(values: (number | null)[]): (number | null)[] {
  const reach = Math.ceil(values.length / 40);
  return values.map((value, i) => {
    if (value === null) return null;
    const around = values.slice(Math.max(0, i - reach), i + reach + 1).filter((other) => other !== null);
    return around.reduce((sum, other) => sum + other, 0) / around.length;
  });
}
