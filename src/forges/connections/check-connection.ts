import { SessionError } from "../../domain/errors/errors.ts";
import type { ConnectionCheck, ConnectionProblem } from "../../domain/repositories/connection.ts";
import type { ForgeKind } from "../../domain/repositories/repository.ts";
import type { ForgeSettings } from "../forge.ts";
import { checkAzure } from "../azure/check.ts";
import { checkBitbucketDataCenter } from "../bitbucket-data-center/check.ts";
import { checkBitbucket } from "../bitbucket/check.ts";
import { checkGitea } from "../gitea/check.ts";
import { checkGitHub } from "../github/check.ts";
import { checkGitLab } from "../gitlab/check.ts";
import { reachOf } from "../http/credential-reach.ts";
import { settingsOf, type ForgeConnection, type GuardedReach } from "./organization-forges.ts";
import { withReach } from "../http/reach.ts";

/** Longest time of a check, in ms. */
const checkLimitMs = 30_000;

/** Most characters of an account's name, and of an address, that are kept. */
const longestAccount = 200;
const longestUrl = 2_000;

type Check<Kind extends ForgeKind> = (
  settings: Extract<ForgeSettings, { kind: Kind }>,
  signal: AbortSignal,
) => Promise<ConnectionCheck>;

/** How the credential of each kind is checked; a new kind needs its line here. */
const checks: { readonly [Kind in ForgeKind]: Check<Kind> } = {
  azure: checkAzure,
  github: checkGitHub,
  gitlab: (settings, signal) => checkGitLab(settings, signal),
  gitea: checkGitea,
  bitbucket: checkBitbucket,
  bitbucketDataCenter: checkBitbucketDataCenter,
  // A plain git server has no API, and can be asked only about a repository: its sessions say whether it takes the credential.
  git: () => Promise.resolve({ account: null, problems: [] }),
};

/**
 * Asks a forge whose a credential is and what it may. Nothing is changed there. Never throws for what the forge answers: that is a
 * problem of the result.
 * @param configured the operator's forges, one of which a connection of the credential `configured` must have
 */
export async function checkConnection(
  connection: Pick<ForgeConnection, "kind" | "webUrl" | "apiUrl">,
  credential: ForgeConnection["credential"],
  {
    reach,
    configured,
    signal,
  }: { readonly reach: GuardedReach; readonly configured: readonly ForgeSettings[]; readonly signal: AbortSignal },
): Promise<ConnectionCheck> {
  if (credential instanceof Error) {
    const remedy = "Put the master key back, or set the credential again.";
    return broken({ missing: "the credential", why: `It can't be opened: ${credential.message}.`, remedy });
  }
  if (credential.type === "configured") return checkConfigured(connection, configured);
  const unsafe = unsafeAddress(connection, reach);
  if (unsafe !== null) return broken(unsafe);
  const settings = settingsOf(connection, credential);
  const limited = AbortSignal.any([signal, AbortSignal.timeout(checkLimitMs)]);
  try {
    const check = checks[settings.kind] as Check<ForgeKind>;
    const found = await withReach(reachOf(reach, credential), () => check(settings, limited));
    return storable(found, settings.webUrl);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SessionError) {
      const { reason, remedy } = error.failure;
      return broken({ missing: "an answer of the forge", why: reason, remedy });
    }
    if (!limited.aborted) throw error;
    const remedy = "Check the address, and whether the forge is up.";
    return broken({ missing: "an answer of the forge", why: "It did not answer in time.", remedy });
  }
}

/** A forge's answers in a form that can be stored and shown: bounded, and without links to another server. */
function storable(check: ConnectionCheck, webUrl: string): ConnectionCheck {
  const { account, accountName, installUrl = null } = check;
  const isLink =
    installUrl !== null && installUrl.length <= longestUrl && URL.parse(installUrl)?.origin === new URL(webUrl).origin;
  return {
    ...check,
    account: boundedName(account),
    ...(accountName !== undefined && { accountName: boundedName(accountName) }),
    ...(check.installUrl !== undefined && { installUrl: isLink ? installUrl : null }),
  };
}

function boundedName(name: string | null): string | null {
  const plain = name?.replaceAll(/\p{Cc}/gu, "") ?? null;
  return plain?.slice(0, longestAccount).toWellFormed() ?? null;
}

function checkConfigured(
  { kind, webUrl }: Pick<ForgeConnection, "kind" | "webUrl">,
  configured: readonly ForgeSettings[],
): ConnectionCheck {
  if (configured.some((settings) => settings.kind === kind && settings.webUrl.toLowerCase() === webUrl.toLowerCase())) {
    return { account: null, problems: [] };
  }
  return broken({
    missing: `a forge of the operator at ${webUrl}`,
    why: `The credential "configured" uses the forge that the operator configured, and there is no ${kind} at this address.`,
    remedy: "Send a token, or ask the operator for the address.",
  });
}

/** A token that would go over a network in the clear; hosts that the operator listed are excepted. */
function unsafeAddress(
  { webUrl, apiUrl }: Pick<ForgeConnection, "webUrl" | "apiUrl">,
  reach: GuardedReach,
): Omit<ConnectionProblem, "essential"> | null {
  const open = [webUrl, apiUrl].find((url) => url !== null && !url.startsWith("https:") && !reach.mayBePrivate(url));
  if (open === undefined || open === null) return null;
  return {
    missing: "encryption",
    why: `${open} is not encrypted: the network could read the credential.`,
    remedy: "Use an address that begins with https://. The operator can allow a host with OFFSTAGE_FORGE_HOSTS.",
  };
}

function broken(problem: Omit<ConnectionProblem, "essential">): ConnectionCheck {
  return { account: null, problems: [{ ...problem, essential: true }] };
}
