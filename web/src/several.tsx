// Several results side by side, the one that is shown below marked.
import * as format from "./format";
import type { Result } from "./result";

export function Several({ results, shown, onShow }: { results: Result[]; shown: number; onShow: (i: number) => void }) {
  const best = Math.min(...results.filter((result) => result.raw.answer.fits).map((result) => result.time));
  const lines: [string, (result: Result) => string][] = [
    ["command", (result) => result.raw.kind],
    ["step time", (result) => format.time(result.raw.answer.step_ns)],
    ["period", (result) => (result.raw.answer.period_ns ? format.time(result.raw.answer.period_ns) : "")],
    ["measured", (result) => (result.raw.execution ? `${result.raw.execution.step_ms.toPrecision(4)} ms` : "")],
    ["against the best here", (result) => (result.raw.answer.fits && best > 0 ? format.times(result.time / best) : "does not fit")],
    ["above the bound", (result) => {
      const { gap, optimal } = result.raw.answer;
      return result.raw.partition || gap === undefined || gap === null ? "" : optimal ? "optimal" : `≤ ${format.atMost(gap)}`;
    }],
    ["devices", (result) => (result.raw.answer.devices ? format.count(result.raw.answer.devices.length) : "")],
    ["fullest device", (result) => {
      const shares = (result.raw.answer.devices ?? []).filter((d) => d.capacity_bytes !== null).map((d) => d.peak_bytes / d.capacity_bytes!);
      return shares.length > 0 ? format.percent(Math.max(...shares)) : "";
    }],
    ["sent between devices", (result) => (result.raw.answer.transfer_bytes === undefined ? "" : format.bytes(result.raw.answer.transfer_bytes))],
    ["placed by", (result) => result.raw.answer.placer ?? result.raw.partition?.method ?? ""],
    ["search", (result) => (result.raw.answer.seconds === undefined ? "" : format.seconds(result.raw.answer.seconds))],
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
