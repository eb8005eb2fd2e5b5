// Bundles src/ into the folder that the first argument names: app.js, app.css, index.html, icon.svg, and the licences of
// the libraries in it; each also as .gz.
// Fails where the page would be too large: 60 KB compressed, 250 KB raw.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const out = process.argv[2] ?? "../build/ui";
const most = { raw: 250 * 1024, compressed: 60 * 1024 };

mkdirSync(out, { recursive: true });
const { metafile } = await build({
  metafile: true,
  entryPoints: { app: "src/app.tsx" },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  outdir: out,
  legalComments: "none",
  logLevel: "warning",
});
writeFileSync(join(out, "app.css"), (await build({
  entryPoints: ["src/style.css"], bundle: true, minify: true, write: false,
})).outputFiles[0].contents);
for (const name of ["index.html", "icon.svg"]) copyFileSync(join("src", name), join(out, name));

// MIT and its like: whoever gets the program gets the text.
const libraries = [...new Set(Object.keys(metafile.inputs).flatMap(
  (path) => path.match(/^node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0] ?? []))].sort();
writeFileSync(join(out, "licenses.txt"), libraries.map((folder) => {
  const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return `${name} ${version}\n\n${readFileSync(join(folder, "LICENSE"), "utf8").trim()}\n`;
}).join(`\n${"-".repeat(78)}\n\n`));

let raw = 0;
let compressed = 0;
for (const name of ["app.js", "app.css", "index.html", "icon.svg", "licenses.txt"]) {
  const bytes = readFileSync(join(out, name));
  const packed = gzipSync(bytes, { level: 9 });
  writeFileSync(join(out, `${name}.gz`), packed);
  raw += bytes.length;
  compressed += packed.length;
}
console.log(`the page: ${raw} bytes, ${compressed} compressed`);
if (raw > most.raw || compressed > most.compressed) {
  console.error(`the page is too large: at most ${most.raw} bytes, ${most.compressed} compressed`);
  process.exit(1);
}
