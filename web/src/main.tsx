// The page: unpacks the data that is in it and shows one result, or several side by side.
import { render } from "preact";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { Asked } from "./asked";
import { Inspector } from "./inspector";
import { ModelMapView } from "./map";
import { Memory } from "./memory";
import { Result } from "./result";
import { Searches } from "./searches";
import { Several } from "./several";
import { Store } from "./store";
import "./style.css";
import { Summary } from "./summary";
import { Timeline } from "./timeline";
import { Training } from "./training";
import type { Data } from "./types";

// Gzipped and in base64; the browser itself unpacks it.
async function unpack(): Promise<Data> {
  const text = document.getElementById("data")!.textContent!.trim();
  const characters = atob(text);
  const packed = new Uint8Array(characters.length);
  for (let i = 0; i < packed.length; ++i) packed[i] = characters.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

type ThemeName = "auto" | "light" | "dark";

// The page itself has begun with the system's.
function ThemeButton({ store }: { store: Store }) {
  const [name, setName] = useState<ThemeName>("auto");
  const next: Record<ThemeName, ThemeName> = { auto: "dark", dark: "light", light: "auto" };
  useLayoutEffect(() => {
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    const apply = () => {
      document.documentElement.dataset.theme = name === "auto" ? (system.matches ? "dark" : "light") : name;
      store.set({ theme: store.state.theme + 1 });
    };
    apply();
    system.addEventListener("change", apply);
    return () => system.removeEventListener("change", apply);
  }, [store, name]);
  return (
    <button id="theme" title="Light or dark; auto follows the system" onClick={() => setName(next[name])}>
      {name}
    </button>
  );
}

// Paper is light, whatever the screen is; before the canvases, which then draw themselves again.
function usePaper() {
  useEffect(() => {
    const { dataset } = document.documentElement;
    let chosen: string | undefined;
    const before = () => {
      chosen = dataset.theme;
      dataset.theme = "light";
    };
    const after = () => {
      dataset.theme = chosen;
    };
    window.addEventListener("beforeprint", before, { capture: true });
    window.addEventListener("afterprint", after, { capture: true });
    return () => {
      window.removeEventListener("beforeprint", before, { capture: true });
      window.removeEventListener("afterprint", after, { capture: true });
    };
  }, []);
}

const kSections: [string, string][] = [
  ["gain", "Summary"],
  ["help", "What would help"],
  ["timeline", "Timeline"],
  ["memory", "Memory"],
  ["map", "Map"],
  ["searches", "Search"],
  ["asked", "What was asked"],
];

function App({ data }: { data: Data }) {
  const results = useMemo(() => data.results.map((raw) => new Result(raw)), [data]);
  const [shown, setShown] = useState(0);
  const result = results[shown];
  const store = useMemo(() => new Store(result.end), [result]);
  const [sections, setSections] = useState<string[]>([]);
  usePaper();
  // The answers are there at once, what has to be drawn a moment later.
  const [whole, setWhole] = useState(false);
  useEffect(() => {
    requestAnimationFrame(() =>
      setTimeout(() => {
        document.documentElement.dataset.answered = performance.now().toFixed(0);
        setWhole(true);
      }),
    );
  }, []);
  useEffect(() => {
    if (whole) document.documentElement.dataset.ready = performance.now().toFixed(0);
  }, [whole]);
  useEffect(() => {
    setSections([...document.querySelectorAll("section[id]")].map((section) => section.id));
    document.title = result.raw.title;
  }, [store, whole]);
  return (
    <>
      <header>
        <h1>{results.length > 1 ? `${results.length} results` : result.raw.title}</h1>
        <nav aria-label="Sections">
          {kSections
            .filter(([id]) => sections.includes(id))
            .map(([id, name]) => (
              <a href={`#${id}`}>{id === "searches" && result.raw.training ? "Curves" : name}</a>
            ))}
        </nav>
        <ThemeButton store={store} />
      </header>
      <main key={shown}>
        {results.length > 1 && <Several results={results} shown={shown} onShow={setShown} />}
        {result.raw.training ? <Training result={result} store={store} /> : <Summary result={result} store={store} />}
        {whole && (
          <>
            {result.hasTimeline && <Timeline result={result} store={store} />}
            {result.raw.memory && <Memory result={result} store={store} />}
            {result.raw.map && result.raw.ops && <ModelMapView result={result} store={store} />}
            {result.isAnswer && <Searches result={result} store={store} />}
            <Asked result={result} store={store} data={data} />
          </>
        )}
      </main>
      {result.hasTimeline && <Inspector result={result} store={store} />}
    </>
  );
}

unpack().then(
  (data) => {
    const app = document.getElementById("app")!;
    app.textContent = "";
    render(<App data={data} />, app);
  },
  (error) => {
    document.getElementById("app")!.textContent = `The data in this page could not be read: ${error}. A newer browser may help.`;
  },
);
