import { copyFile, glob, mkdir } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { build, type Plugin } from "vite";

/**
 * Builds what Node runs: `src` as few files, since Node finds and links each module by itself, which took a fifth of a start; and what the
 * program reads at run time: SQL with its revision, templates of automations, and the programs that run inside a sandbox.
 * `node scripts/build-server.ts [folder]`; the folder is `dist` if omitted. Packages stay outside: npm installs them.
 */
const root = join(import.meta.dirname, "..");
const src = join(root, "src");
const [to = join(root, "dist")] = process.argv.slice(2);

/** What Node starts by its path: the command line, and each program that has a process or a thread of its own. */
const started = [
  "main",
  "agents/acp/turn-thread",
  "agents/basic/main",
  "gateway/process/program",
  "templates/renderer-program",
  "templates/watchdog",
  "worker/secret-scan/scan-thread",
];

/** Stands for the way from a built file up to the folder of all of them, until it is known which modules are in which file. */
const up = "__OFFSTAGE_UP__";

/**
 * Each module keeps the address that it has in the source, below the built folder: what it reads, and the programs that it starts, are there.
 * In one file with others it would have that file's.
 */
const ownAddresses: Plugin = {
  name: "own-addresses",
  enforce: "pre",
  transform(code, id) {
    if (!id.startsWith(src) || !code.includes("import.meta.")) return null;
    const own = relative(src, id).replace(/\.ts$/u, ".js");
    const [url, folder] = [own, dirname(own)].map((path) => `new URL("${up}${path}", import.meta.url)`);
    const text = code
      .replaceAll("import.meta.url", `(${url}.href)`)
      .replaceAll("import.meta.dirname", `ownPath(${folder})`)
      .replaceAll("import.meta.filename", `ownPath(${url})`);
    const imported = text.includes("ownPath(") ? 'import { fileURLToPath as ownPath } from "node:url";' : "";
    // On the first line, so that each line keeps its number.
    return { code: `${imported}${text}`, map: null };
  },
  renderChunk(code, { fileName }) {
    const above = "../".repeat(fileName.split("/").length - 1);
    return { code: code.replaceAll(up, above === "" ? "./" : above), map: null };
  },
};

await build({
  configFile: false,
  root,
  publicDir: false,
  logLevel: "warn",
  plugins: [ownAddresses],
  ssr: { external: true },
  build: {
    ssr: true,
    outDir: to,
    emptyOutDir: false,
    target: "es2024",
    minify: false,
    sourcemap: true,
    rolldownOptions: {
      input: Object.fromEntries(started.map((path) => [path, join(src, `${path}.ts`)])),
      // The names of errors are those of their classes, of which two in one file may be called the same.
      output: { entryFileNames: "[name].js", chunkFileNames: "chunks/[name]-[hash].js", keepNames: true },
    },
  },
});

for await (const file of glob(["**/*.{sql,sh,cjs,pl}", "store/sql/*.json", "automation-files/templates/*.yaml"], {
  cwd: src,
})) {
  await mkdir(dirname(join(to, file)), { recursive: true });
  await copyFile(join(src, file), join(to, file));
}
