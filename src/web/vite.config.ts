import { join } from "node:path";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** The operations of the API are below these; no page is. */
const nouns =
  "agent|audit|automation|delivery|job|key|ledger|login|organization|repository|secret|session|user|webhook";

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), tailwind()],
  resolve: { alias: { "shiki/langs": join(import.meta.dirname, "session/languages.ts") } },
  build: {
    outDir: "../../dist/web",
    emptyOutDir: true,
    assetsDir: "assets",
    chunkSizeWarningLimit: 1_000,
    rolldownOptions: {
      output: {
        // What is shared by pages runs before the entry does: only in the library's own chunk is the setting in time for schemas.
        codeSplitting: { groups: [{ name: "zod", test: /node_modules\/zod\/|\/strict-policy\.ts$/u }] },
      },
    },
  },
  // `npx vite src/web` beside a running server: the pages come from here, the API from there.
  server: { proxy: { [`^/(?:(?:${nouns})/|organization$|me$)`]: "http://127.0.0.1:4747" } },
});
