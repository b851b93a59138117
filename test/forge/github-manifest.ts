import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { text as readText } from "node:stream/consumers";
import type { Answer } from "./api-request.ts";
import { refusedByGitHub } from "./github-api.ts";
import { createTestApp } from "./github-app.ts";
import type { ForgeState } from "./state.ts";

/**
 * GitHub's page of new Apps: it registers the App of the form's manifest, and its link, which a person clicks to confirm, leads back
 * with a code.
 */
export async function registerFromManifest(
  state: ForgeState,
  request: IncomingMessage,
  query: URLSearchParams,
  response: ServerResponse,
): Promise<void> {
  const manifest = JSON.parse(new URLSearchParams(await readText(request)).get("manifest") ?? "{}") as {
    name: string;
    redirect_url: string;
    hook_attributes: { url: string };
    default_permissions: Record<string, string>;
    default_events: string[];
  };
  const code = randomBytes(20).toString("hex");
  state.registered.set(code, { name: manifest.name, manifest });
  const back = new URL(manifest.redirect_url);
  back.searchParams.set("code", code);
  back.searchParams.set("state", query.get("state") ?? "");
  const address = back.href.replaceAll("&", "&amp;");
  response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" });
  response.end(
    `<!doctype html><html lang="en"><title>New App</title><h1>${manifest.name}</h1><a href="${address}">Create GitHub App</a></html>`,
  );
}

/** Hands an App over for its code, once (https://docs.github.com/rest/apps/apps#create-a-github-app-from-a-manifest). */
export function convertManifest(state: ForgeState, code: string): Answer {
  const registered = state.registered.get(code);
  if (registered === undefined) return refusedByGitHub(404, "Not Found");
  state.registered.delete(code);
  const { name, manifest } = registered;
  const app = createTestApp(4_711);
  const permissions = manifest["default_permissions"] as Record<string, string>;
  const events = manifest["default_events"] as string[];
  state.app = { ...app, permissions, events, installations: [] };
  return {
    status: 201,
    body: {
      id: app.id,
      slug: `offstage-${app.id}`,
      name,
      html_url: `${state.url}/apps/offstage-${app.id}`,
      pem: app.privateKey,
      webhook_secret: `hook-secret-${code}`,
      client_id: "Iv1.0123456789abcdef",
      client_secret: randomBytes(20).toString("hex"),
      permissions,
      events,
    },
  };
}
