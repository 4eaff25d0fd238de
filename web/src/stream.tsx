// What is said of a stream beside its timeline.
import * as format from "./format";
import type { Result } from "./result";

export function StreamWords({ result }: { result: Result }) {
  const { answer, stream } = result.raw;
  const { in_flight, latency_ns } = answer.stream!;
  const shown = stream!.finished.length;
  const last = stream!.finished.filter((finish) => finish <= result.end).length;
  return (
    <p id="stream">
      {in_flight === 1 ? (
        <>
          One step after the other, each for <b id="stream-period">{format.time(result.time)}</b>.
        </>
      ) : (
        <>
          <b id="stream-in-flight">{in_flight}</b> steps (or micro-batches) in flight, each for{" "}
          <b id="stream-latency">{format.time(latency_ns!)}</b> at most; one ends every{" "}
          <b id="stream-period">{format.time(result.time)}</b> on average.
        </>
      )}{" "}
      <span class="muted">
        {result.until === null
          ? `The first ${shown}, without the others.`
          : `Until step ${shown + 1} enters; the first ends at ${format.time(stream!.finished[0])}, then ${last - 1} more.`}
      </span>
    </p>
  );
}
