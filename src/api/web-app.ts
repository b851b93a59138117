import { existsSync } from "node:fs";
import { join } from "node:path";
import fastifyStatic from "@fastify/static";
import type { App } from "./context.ts";

/** The pages that the browser's own router draws: each is the same document. */
const pages = ["/", "/sessions/:id", "/sign-in", "/settings", "/audit", "/ledger", "/webhooks", "/webhooks/:id"];

/** Only what we serve ourselves runs in the page; it can't be framed, and tells no other site where it was. */
const pageHeaders = {
  "Content-Security-Policy":
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Cross-Origin-Opener-Policy": "same-origin",
};

/** Serves the built web app beside the API, whose operations win. */
export async function addWebApp(app: App, directory: string | null): Promise<void> {
  if (directory === null || !existsSync(join(directory, "index.html"))) return;
  await app.register(fastifyStatic, {
    root: join(directory, "assets"),
    prefix: "/assets/",
    // Each build names its files anew.
    immutable: true,
    maxAge: "365d",
  });
  for (const page of pages) {
    app.get(page, { schema: { hide: true } }, (_request, reply) =>
      reply
        .headers(pageHeaders)
        .header("Cache-Control", "no-cache")
        .sendFile("index.html", directory, { maxAge: 0, immutable: false }),
    );
  }
}
