// Builds page.html: the script and the style in one file, with a place for the data. With --check,
// says whether the page that is there is what would be built.
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const page = join(here, "page.html");

// uPlot has everything in one object, so that nothing of it would be left out: bars and splines are
// not drawn here.
const leaner = {
  name: "leaner",
  setup: ({ onLoad }) =>
    onLoad({ filter: /uPlot\.esm\.js$/ }, async ({ path }) => {
      let contents = await readFile(path, "utf8");
      for (const unused of [/\(paths\.bars\s+= bars\);/, /\(paths\.spline\s+= monotoneCubic\);/]) {
        if (!unused.test(contents)) throw new Error(`${path}: has no ${unused}`);
        contents = contents.replace(unused, "");
      }
      return { contents, loader: "js" };
    }),
};

const result = await build({
  entryPoints: [join(here, "src/main.tsx")],
  absWorkingDir: here,
  bundle: true,
  minify: true,
  write: false,
  outdir: here,
  format: "iife",
  target: ["chrome109", "firefox115", "safari16.4"],
  // Shorter than the automatic runtime's calls.
  tsconfigRaw: {},
  jsx: "transform",
  jsxFactory: "h",
  jsxFragment: "Fragment",
  inject: [join(here, "src/jsx.ts")],
  charset: "utf8",
  legalComments: "none",
  plugins: [leaner],
});
const output = (ending) => result.outputFiles.find((file) => file.path.endsWith(ending)).text.trim();
// Nothing in the script may end it.
const script = output(".js").replaceAll("</script", "<\\/script");
const html = (await readFile(join(here, "src/page.html"), "utf8"))
  .replace("EMPLACE_STYLE", () => output(".css"))
  .replace("EMPLACE_SCRIPT", () => script);

const kMostBytes = 150_000; // every page that is written has all of it
if (Buffer.byteLength(html) > kMostBytes) {
  console.error(`the page's code is ${Buffer.byteLength(html)} bytes; expected at most ${kMostBytes}`);
  process.exit(1);
}
if (process.argv.includes("--check")) {
  if ((await readFile(page, "utf8")) !== html) {
    console.error("web/page.html is not what web/src builds: run `npm run build` in web/");
    process.exit(1);
  }
} else {
  await writeFile(page, html);
  console.log(`wrote page.html: ${Buffer.byteLength(html)} bytes`);
}
