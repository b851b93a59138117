import { createSign } from "node:crypto";
import { SessionError } from "../../domain/errors/errors.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import { whileChoosing } from "../browse.ts";
import { callForge, type ForgeAnswer, type ForgeRequest } from "../http/http.ts";
import { refusedBy } from "../http/refusal.ts";
import { pathOn } from "../serves.ts";
import type { InstallationPermissions } from "./access.ts";

/** A GitHub App: its number, and its private key as PEM. */
export interface GitHubApp {
  readonly id: string;
  readonly privateKey: string;
}

/** Sends a request as the App itself. */
export type AppCall = (
  path: string,
  request: Pick<ForgeRequest, "method" | "body" | "signal" | "takesPage" | "onceWithinMs">,
) => Promise<ForgeAnswer>;

/** The App's private key can't sign. */
export class UnusableKey extends SessionError {
  constructor(cause: unknown) {
    super(
      {
        code: "repository_access_denied",
        reason: "The GitHub App's private key can't be used to sign.",
        retryable: false,
        remedy: "Set OFFSTAGE_GITHUB_APP_PRIVATE_KEY_FILE to the .pem file that GitHub gave for the App.",
      },
      { cause },
    );
  }
}

/** Clocks that differ by less are no reason of a refusal, in ms: GitHub allows for a minute. */
const sameClockMs = 30_000;
const apiVersion = "2022-11-28";

/**
 * Sends requests as a GitHub App, each with its own token. If GitHub refuses one, and its clock differs, this machine's
 * clock is off: the token is signed by GitHub's time from then on.
 * @throws UnusableKey
 */
export function createAppCall(app: GitHubApp, apiUrl: string): AppCall {
  /** How far GitHub's clock is ahead of ours. */
  let aheadMs = 0;
  return async function call(path, request) {
    for (let isLast = false; ; isLast = true) {
      const headers = {
        Authorization: `Bearer ${appToken(app, Date.now() + aheadMs)}`,
        Accept: "application/vnd.github+json",
        "X-GitHub-Api-Version": apiVersion,
      };
      const answer = await callForge(`${apiUrl}${path}`, { ...request, headers });
      const foundMs = Date.parse(answer.headers.get("date") ?? "") - Date.now();
      if (answer.status !== 401 || isLast || !(Math.abs(foundMs - aheadMs) > sameClockMs)) return answer;
      aheadMs = foundMs;
    }
  };
}

/**
 * JSON Web Token of the App itself (RS256, valid for at most ten minutes):
 * https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app
 * @param now in ms since 1970, by GitHub's clock
 */
function appToken({ id, privateKey }: GitHubApp, now: number): string {
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const seconds = Math.floor(now / 1_000);
  const unsigned = `${encode({ alg: "RS256", typ: "JWT" })}.${encode({ iat: seconds - 60, exp: seconds + 540, iss: id })}`;
  try {
    return `${unsigned}.${createSign("RSA-SHA256").update(unsigned).sign(privateKey, "base64url")}`;
  } catch (cause) {
    throw new UnusableKey(cause);
  }
}

/** An installation of the App, for the repositories of one owner. */
export interface AppInstallation {
  readonly id: number;
  readonly owner: string;
}

/** A token for one installation of the App. */
export interface InstallationToken {
  readonly token: string;
  readonly permissions: InstallationPermissions;
  /** Whether it was made so lately that not all of GitHub may know it. */
  readonly isFresh: () => boolean;
}

/** The tokens of an App's installations, made when they are needed. */
export interface Installations {
  tokenFor(address: RepositoryAddress, signal: AbortSignal): Promise<InstallationToken>;
  /** That of an installation whose number is known. */
  tokenOf(installation: AppInstallation, signal: AbortSignal): Promise<InstallationToken>;
  /** The App's installations, the first `most` of them, for people who choose: asked for once. */
  list(most: number, signal: AbortSignal): Promise<AppInstallation[]>;
  /** The next token for the repository's owner is a new one. */
  forget(address: RepositoryAddress): void;
  /** Tokens that GitHub takes still. */
  issued(): readonly string[];
}

/** An installation's token is valid for an hour, and renewed 10 minutes before. */
const validMs = 60 * 60_000;
const renewAfterMs = validMs - 10 * 60_000;
/** For so long GitHub may answer 401 to a new token, in ms. */
const freshMs = 10_000;

/** Creates the tokens of an App, of which each owner has one. Their age is measured here: this machine's clock may be off. */
export function createInstallations(
  app: GitHubApp,
  { apiUrl, webUrl }: { readonly apiUrl: string; readonly webUrl: string },
): Installations {
  const host = new URL(webUrl).host;
  const call = createAppCall(app, apiUrl);
  const known = new Map<string, InstallationToken & { readonly madeAt: number }>();
  /** When each token was made. */
  const issued = new Map<string, number>();

  async function numberOf(address: RepositoryAddress, signal: AbortSignal): Promise<number> {
    const installation = await call(`/repos/${pathOn(webUrl, address)}/installation`, { method: "GET", signal });
    if (installation.status !== 200) throw refusedBy(host, installation);
    return (installation.body as { id: number }).id;
  }

  async function make(id: number, signal: AbortSignal) {
    const made = await call(`/app/installations/${id}/access_tokens`, { method: "POST", body: {}, signal });
    if (made.status !== 201) throw refusedBy(host, made);
    const { token, permissions = {} } = made.body as { token: string; permissions?: InstallationPermissions };
    const madeAt = performance.now();
    for (const [old, since] of issued) if (madeAt - since > validMs) issued.delete(old);
    issued.set(token, madeAt);
    return { token, permissions, madeAt, isFresh: () => performance.now() - madeAt < freshMs };
  }

  async function kept(owner: string, signal: AbortSignal, number: () => Promise<number>): Promise<InstallationToken> {
    const last = known.get(owner);
    if (last !== undefined && performance.now() - last.madeAt < renewAfterMs) return last;
    const made = await make(await number(), signal);
    known.set(owner, made);
    return made;
  }

  return {
    tokenFor: (address, signal) => kept(ownerOf(address), signal, () => numberOf(address, signal)),
    tokenOf: ({ id, owner }, signal) => kept(owner, signal, () => Promise.resolve(id)),
    async list(most, signal) {
      const answer = await call(`/app/installations?per_page=${most}`, { method: "GET", signal, ...whileChoosing });
      if (answer.status !== 200) throw refusedBy(host, answer);
      const all = answer.body as { id: number; account: { login: string } | null }[];
      return all.flatMap(({ id, account }) => (account === null ? [] : [{ id, owner: account.login }]));
    },
    forget: (address) => void known.delete(ownerOf(address)),
    issued: () => [...issued.keys()],
  };
}

function ownerOf({ path }: RepositoryAddress): string {
  return path.split("/")[0] ?? "";
}
