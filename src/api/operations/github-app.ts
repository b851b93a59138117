import { createHash, randomBytes, randomUUID } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { InvalidInputError, OffstageError } from "../../domain/errors/errors.ts";
import { text } from "../../domain/fields/text.ts";
import {
  createConnectionSchema,
  type ConnectionCheck,
  type ConnectionCredential,
} from "../../domain/repositories/connection.ts";
import { requireStillAdmin } from "../../store/people/still-admin.ts";
import { createConnection, requireFreeAddress } from "../../store/secrets/forge-connections.ts";
import { openConnection, saveConnectionHealth } from "../../store/secrets/opened-connections.ts";
import type { Vault } from "../../store/secrets/vault.ts";
import { principalOfRequest } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { isSameSecret } from "../http/same-secret.ts";
import { answers } from "../http/shapes.ts";
import { addressesOf, defaultName, hookUrlOf } from "./connections.ts";

const tags = ["Connections"];
const path = "/connection/github-app";
/** Binds a registration to the browser that began it. */
const cookieName = "offstage_github_app";
/** Time for a person to register the App at GitHub, in seconds. */
const registrationSeconds = 30 * 60;

const startSchema = z.object({
  name: createConnectionSchema.shape.name,
  webUrl: createConnectionSchema.shape.webUrl,
  apiUrl: createConnectionSchema.shape.apiUrl,
  account: text(100)
    .regex(/^[A-Za-z0-9-]+$/u, "must be the name of an organization at GitHub")
    .optional()
    .meta({ description: "The organization at GitHub that gets the App. Default: the person's own account." }),
});

/** A registration under way. It is sealed, and kept by the browser alone. */
interface Registration {
  readonly organizationId: string;
  readonly keyId: string | null;
  readonly userId: string | null;
  readonly connectionId: string;
  readonly name: string;
  readonly webUrl: string;
  readonly apiUrl: string;
  readonly action: string;
  /** The expected value of the browser's cookie. */
  readonly nonce: string;
  /** Ms since the epoch. */
  readonly until: number;
}

/**
 * Adds the registration of a GitHub App by a manifest
 * (https://docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest): the browser takes the manifest to
 * GitHub, a person confirms there, and GitHub sends the browser back with a code that is worth the App's private key once.
 */
export function addGitHubAppOperations(
  app: App,
  options: Pick<ApiOptions, "database" | "vault" | "connections" | "publicUrl">,
): void {
  const { database, vault, connections, publicUrl } = options;
  const cookie = () => ({
    path,
    httpOnly: true,
    // "lax", because GitHub's redirect comes from another site and must include the cookie.
    sameSite: "lax" as const,
    secure: publicUrl().startsWith("https:"),
    maxAge: registrationSeconds,
  });
  const manifestOf = ({ connectionId, nonce }: Registration): Record<string, unknown> =>
    connections.appManifest({
      // Names are unique over all of GitHub.
      name: `Offstage ${createHash("sha256").update(nonce).digest("hex").slice(0, 8)}`,
      publicUrl: publicUrl(),
      hookUrl: hookUrlOf(options, connectionId),
      redirectUrl: `${publicUrl()}${path}/callback`,
    });

  app.post(
    `${path}/start`,
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "startGitHubApp",
        summary: "Begin to register a GitHub App, which a person confirms in the same browser",
        body: startSchema,
        response: answers(
          z.object({
            formUrl: z.string().meta({ description: "Page of this server whose form leads to GitHub." }),
            action: z.string().meta({ description: "Where the form with the field `manifest` is posted to." }),
            manifest: z.record(z.string(), z.unknown()),
            state: z.string(),
          }),
        ),
      },
    },
    async (request, reply) => {
      const { organizationId, keyId, userId } = principalOfRequest(request);
      const { account, name } = request.body;
      const { webUrl, apiUrl } = addressesOf({ ...request.body, kind: "github" });
      await requireFreeAddress(database, organizationId, webUrl);
      const nonce = randomBytes(32).toString("base64url");
      const owner = account === undefined ? "" : `/organizations/${account}`;
      const registration: Registration = {
        organizationId,
        keyId,
        userId,
        webUrl,
        nonce,
        connectionId: randomUUID(),
        name: name ?? defaultName(webUrl),
        apiUrl: apiUrl ?? "",
        action: `${new URL(webUrl).origin}${owner}/settings/apps/new`,
        until: Date.now() + registrationSeconds * 1_000,
      };
      const state = await sealState(vault, registration);
      void reply.setCookie(cookieName, nonce, cookie());
      return {
        formUrl: `${path}/form?state=${encodeURIComponent(state)}`,
        action: `${registration.action}?state=${encodeURIComponent(state)}`,
        manifest: manifestOf(registration),
        state,
      };
    },
  );
  app.get(
    `${path}/form`,
    { config: { operation: { scope: null } }, schema: { hide: true } },
    async (request, reply) => {
      const { state, registration } = await registrationOf(vault, request);
      const page = formPage(`${registration.action}?state=${encodeURIComponent(state)}`, manifestOf(registration));
      return reply
        .type("text/html; charset=utf-8")
        .headers({
          // The form alone leaves this page, and only for the forge.
          "Content-Security-Policy": `default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; form-action ${new URL(registration.action).origin}`,
          "X-Frame-Options": "DENY",
        })
        .serializer((body: unknown) => String(body))
        .send(page);
    },
  );
  app.get(
    `${path}/callback`,
    {
      config: { operation: { scope: null, changes: true } },
      schema: { hide: true, operationId: "registerGitHubApp" },
    },
    async (request, reply) => {
      try {
        const { registration } = await registrationOf(vault, request);
        const { code } = request.query as { code?: unknown };
        if (typeof code !== "string" || !/^[\w-]{1,200}$/u.test(code)) throw new InvalidInputError("code: is missing");
        const { organizationId, keyId, userId, connectionId: id, name, webUrl, apiUrl } = registration;
        request.principal = { organizationId, keyId, userId, scopes: [], automationIds: null };
        void reply.clearCookie(cookieName, cookie());
        await requireStillAdmin(database, registration);
        const made = await connections.convertAppManifest({ kind: "github", webUrl, apiUrl }, code);
        const credential: ConnectionCredential = { type: "app", appId: made.appId, privateKey: made.privateKey };
        const addresses = { kind: "github", webUrl, apiUrl } as const;
        // Saved at once, whatever it lacks: GitHub sends the private key only once.
        const connection = { ...addresses, id, name, credential, check: notChecked, hookSecret: made.hookSecret };
        await createConnection(database, vault, organizationId, connection);
        await connections.changed(organizationId);
        await checkSaved(options, organizationId, id).catch((error: unknown) =>
          request.log.warn({ err: error, connectionId: id }, "a new GitHub App could not be checked"),
        );
        const page = URL.parse(made.htmlUrl);
        const isThere = page !== null && page.origin === new URL(webUrl).origin;
        return await reply.redirect(isThere ? `${page.href}/installations/new` : "/settings#connections");
      } catch (error) {
        if (!(error instanceof OffstageError)) throw error;
        // Only one of our own words: text from elsewhere is not passed on.
        if (error instanceof InvalidInputError) return reply.redirect("/settings?connection=expired#connections");
        request.log.warn({ err: error }, "a GitHub App could not be connected");
        return reply.redirect("/settings?connection=failed#connections");
      }
    },
  );
}

/** The check of an App that was just registered. */
const notChecked: ConnectionCheck = {
  account: null,
  problems: [
    {
      missing: "a check",
      why: "The App was registered, and GitHub could not be asked about it yet.",
      remedy: "Check it now, or wait: it is checked within the hour.",
      essential: false,
    },
  ],
};

async function checkSaved(
  { database, vault, connections }: Pick<ApiOptions, "database" | "vault" | "connections">,
  organizationId: string,
  id: string,
): Promise<void> {
  const saved = await openConnection(database, vault, organizationId, id);
  await saveConnectionHealth(database, saved, await connections.check(saved, saved.credential));
}

/** The state that GitHub passes through: sealed, so that only this server can make one, with its purpose. */
async function sealState(vault: Vault, registration: Registration): Promise<string> {
  const { sealed, masterKey } = await vault.seal(stateId, JSON.stringify(registration));
  return `${masterKey}.${sealed.toString("base64url")}`;
}

/** The context in which a state is sealed, in place of a row's id. */
const stateId = "github-app-registration";

/**
 * The registration of a request, which the same browser began.
 * @throws InvalidInputError if there is none, or it is too old
 */
async function registrationOf(
  vault: Vault,
  request: FastifyRequest,
): Promise<{ readonly state: string; readonly registration: Registration }> {
  const { state } = request.query as { state?: unknown };
  const given = request.cookies[cookieName];
  const expired = new InvalidInputError("state: the registration has expired, or was begun in another browser");
  if (typeof state !== "string" || state.length > 10_000 || given === undefined) throw expired;
  const [masterKey = "", sealed = ""] = state.split(".");
  const opened = await vault
    .open(stateId, { masterKey, sealed: Buffer.from(sealed, "base64url") })
    .catch(() => Promise.reject(expired));
  const registration = JSON.parse(opened) as Registration;
  if (registration.until < Date.now() || !isSameSecret(given, registration.nonce)) throw expired;
  return { state, registration };
}

function formPage(action: string, manifest: Record<string, unknown>): string {
  const escaped = (value: string): string =>
    value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
  const { host } = new URL(action);
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Register a GitHub App</title>
<style>body{font:16px/1.5 system-ui;max-width:36rem;margin:4rem auto;padding:0 1rem}button{font:inherit;padding:.5rem 1rem}</style>
<main><h1>Register a GitHub App</h1>
<p>${escaped(host)} asks you to confirm the App, and then on which repositories it is installed.</p>
<form method="post" action="${escaped(action)}">
<input type="hidden" name="manifest" value="${escaped(JSON.stringify(manifest))}">
<button type="submit">Continue at ${escaped(host)}</button></form></main></html>`;
}
