import { existsSync } from "node:fs";
import { join } from "node:path";
import fastifyStatic from "@fastify/static";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { App } from "./http/context.ts";

/** The pages that the browser's own router draws: each is the same document. */
const pages = [
  "/",
  "/sessions/:id",
  "/automations",
  "/automations/:id",
  "/sign-in",
  "/settings",
  "/audit",
  "/ledger",
  "/webhooks",
  "/webhooks/:id",
];

/** Only what we serve ourselves runs in the page; it can't be framed, and tells no other site where it was. */
const pageHeaders = {
  "Content-Security-Policy":
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Cross-Origin-Opener-Policy": "same-origin",
};

/** Whether somebody opens an address in a browser, and is to see a page; programs are answered as the API answers. */
export function asksForPage({ method, headers }: FastifyRequest): boolean {
  return method === "GET" && headers.accept?.includes("text/html") === true;
}

/**
 * Serves the built web app beside the API, whose operations win.
 * @returns what answers with the app's document; null where there is no app
 */
export async function addWebApp(
  app: App,
  directory: string | null,
): Promise<((reply: FastifyReply) => FastifyReply) | null> {
  if (directory === null || !existsSync(join(directory, "index.html"))) return null;
  await app.register(fastifyStatic, {
    root: join(directory, "assets"),
    prefix: "/assets/",
    // Each build names its files anew.
    immutable: true,
    maxAge: "365d",
  });
  const sendPage = (reply: FastifyReply): FastifyReply =>
    reply
      .headers(pageHeaders)
      .header("Cache-Control", "no-cache")
      .sendFile("index.html", directory, { maxAge: 0, immutable: false });
  for (const page of pages) app.get(page, { schema: { hide: true } }, (_request, reply) => sendPage(reply));
  return sendPage;
}
