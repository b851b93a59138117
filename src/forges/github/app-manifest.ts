import { SessionError } from "../../domain/errors/errors.ts";
import { callForge } from "../http/http.ts";
import { wordsOf } from "../http/refusal.ts";
import { appEvents, appPermissions } from "./check.ts";

/** The settings with which an App is registered. */
export interface AppToRegister {
  /** At most 34 characters, and no other App's on the server. */
  readonly name: string;
  /** Offstage's own address. */
  readonly publicUrl: string;
  /** The address to which the App delivers its events. */
  readonly hookUrl: string;
  /** The address to which GitHub redirects the browser with the code, once the App is registered. */
  readonly redirectUrl: string;
}

/** An App as GitHub registered it. */
export interface RegisteredApp {
  readonly appId: string;
  readonly privateKey: string;
  readonly hookSecret: string;
  /** The App's page at GitHub. */
  readonly htmlUrl: string;
}

/** The manifest of an App (https://docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest). */
export function appManifest({ name, publicUrl, hookUrl, redirectUrl }: AppToRegister): Record<string, unknown> {
  return {
    name,
    url: publicUrl,
    hook_attributes: { url: hookUrl, active: true },
    redirect_url: redirectUrl,
    setup_url: `${publicUrl}/settings`,
    public: false,
    default_permissions: appPermissions,
    default_events: appEvents,
  };
}

/**
 * Takes over the App that GitHub registered from a manifest. A code works once, within an hour.
 * @throws SessionError if GitHub refuses the code, or answers anything else
 */
export async function convertManifest(apiUrl: string, code: string, signal: AbortSignal): Promise<RegisteredApp> {
  const answer = await callForge(`${apiUrl}/app-manifests/${encodeURIComponent(code)}/conversions`, {
    method: "POST",
    headers: { Accept: "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28" },
    signal,
  });
  const { id, pem, webhook_secret: hookSecret, html_url: htmlUrl } = (answer.body ?? {}) as Record<string, unknown>;
  const isWhole = typeof pem === "string" && typeof hookSecret === "string" && typeof htmlUrl === "string";
  if (answer.status === 201 && typeof id === "number" && isWhole) {
    return { appId: String(id), privateKey: pem, hookSecret, htmlUrl };
  }
  throw new SessionError({
    code: "repository_access_denied",
    reason: `GitHub did not hand over the App: it answered ${answer.status}, ${wordsOf(answer.body)}.`,
    retryable: false,
    remedy: "Delete the App at GitHub and register it anew.",
  });
}
