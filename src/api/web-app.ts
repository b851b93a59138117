import { existsSync } from "node:fs";
import { join } from "node:path";
import fastifyStatic from "@fastify/static";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { App } from "./http/context.ts";

/** The pages of the web app's own router. All are served as the same document; the API's reference is another. */
const pages = [
  "/",
  "/sessions/:id",
  "/shared/:id",
  "/automations",
  "/automations/:id",
  "/automations/:id/edit",
  "/repositories",
  "/repositories/:id",
  "/sign-in",
  "/authorize",
  "/authorize/:id",
  "/settings",
  "/audit",
  "/ledger",
  "/people",
  "/system",
  "/insight",
  "/webhooks",
  "/webhooks/:id",
];

/** Only our own scripts run in the page, other sites can't frame it, and it sends our URLs to no other site. */
const pageHeaders = {
  "Content-Security-Policy":
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Cross-Origin-Opener-Policy": "same-origin",
};

/** Files of the app whose addresses stay: browsers and systems ask for them by name. */
const files = ["/manifest.webmanifest", "/icon-192.png", "/icon-512.png", "/icon-maskable-512.png"];

/** The service worker shows notices, loads nothing, and sends requests to this server only. */
const workerHeaders = {
  "Content-Security-Policy": "default-src 'none'; connect-src 'self'",
  "X-Content-Type-Options": "nosniff",
};

/** Whether a browser opens an address as a page. Other clients get the API's answers. */
export function asksForPage({ method, headers }: FastifyRequest): boolean {
  return method === "GET" && headers.accept?.includes("text/html") === true;
}

/**
 * Serves the built web app in addition to the API. The API's paths have priority.
 * @param directory null: there is no web app
 * @returns a function that sends the app's document; null if there is no app
 */
export async function addWebApp(
  app: App,
  directory: string | null,
): Promise<((reply: FastifyReply) => FastifyReply) | null> {
  if (directory === null || !existsSync(join(directory, "index.html"))) return null;
  await app.register(fastifyStatic, {
    root: join(directory, "assets"),
    prefix: "/assets/",
    // Every build gives its files new names.
    immutable: true,
    maxAge: "365d",
  });
  const send = (reply: FastifyReply, name: string): FastifyReply =>
    reply.header("Cache-Control", "no-cache").sendFile(name, directory, { cacheControl: false });
  const sendDocument = (reply: FastifyReply, name: string): FastifyReply => send(reply.headers(pageHeaders), name);
  const sendPage = (reply: FastifyReply): FastifyReply => sendDocument(reply, "index.html");
  for (const page of pages) app.get(page, { schema: { hide: true } }, (_request, reply) => sendPage(reply));
  app.get("/reference", { schema: { hide: true } }, (_request, reply) => sendDocument(reply, "reference.html"));
  for (const file of files) app.get(file, { schema: { hide: true } }, (_request, reply) => send(reply, file.slice(1)));
  app.get("/service-worker.js", { schema: { hide: true } }, (_request, reply) =>
    send(reply.headers(workerHeaders), "service-worker.js"),
  );
  return sendPage;
}
