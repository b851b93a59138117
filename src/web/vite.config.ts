import { join } from "node:path";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** Paths of the API's operations begin with these; no page's path does. */
const nouns =
  "agent|audit|automation|delivery|grant|insight|job|key|ledger|login|notice|oauth|openapi.json|organization|repository|secret|session|share|subscription|system|user|webhook";

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), tailwind()],
  resolve: { alias: { "shiki/langs": join(import.meta.dirname, "session/changes/languages.ts") } },
  build: {
    outDir: "../../dist/web",
    emptyOutDir: true,
    assetsDir: "assets",
    chunkSizeWarningLimit: 1_000,
    // Every browser that the app runs in loads modules ahead by itself.
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: ["index.html", "reference.html", "service-worker/service-worker.ts"].map((name) =>
        join(import.meta.dirname, name),
      ),
      output: {
        // A service worker's address stays, and what is above it is what it is for.
        entryFileNames: ({ name }) => (name === "service-worker" ? "[name].js" : "assets/[name]-[hash].js"),
        // Without their names: the first script lists all of them.
        chunkFileNames: "assets/[hash:7].js",
        // Shared code runs before the entry: only in the library's own chunk does the setting apply before schemas are
        // created.
        codeSplitting: { groups: [{ name: "zod", test: /node_modules\/zod\/|\/strict-policy\.ts$/u }] },
      },
    },
  },
  // For `npx vite src/web` with a running server: the API's requests go to that server.
  server: { proxy: { [`^/(?:(?:${nouns})/|organization$|me$)`]: "http://127.0.0.1:4747" } },
});
