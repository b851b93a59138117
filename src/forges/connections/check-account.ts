import type { ConnectionCheck, ConnectionProblem } from "../../domain/repositories/connection.ts";
import type { ForgeKind } from "../../domain/repositories/repository.ts";
import type { AccountPlace } from "./account-place.ts";
import { checkConnection } from "./check-connection.ts";
import type { GuardedReach } from "./organization-forges.ts";

/** How the scopes of a kind's tokens, as its check names them, matter for opening pull requests alone. */
interface Needs {
  /** Without these none can be opened. */
  readonly essential: RegExp;
  /** Only what Offstage's own account does needs these. */
  readonly unneeded: RegExp;
  /** Without these the forge does not say whose the token is. */
  readonly identity: RegExp;
}

const none = /^(?!)/u;
/** How the checks of all kinds call a token that has not long to live. */
const endsSoon = /^a token that l(?:asts|ives longer)/u;
const needs: Readonly<Record<ForgeKind, Needs>> = {
  azure: { essential: /^Code: /u, unneeded: /^(?:Work Items|Build|Identity): /u, identity: none },
  github: {
    essential: /^(?:repo$|Pull requests: )/u,
    unneeded: /^(?:workflow$|Contents: |Issues: |Commit statuses: )/u,
    identity: none,
  },
  gitlab: { essential: /^api$/u, unneeded: none, identity: none },
  gitea: { essential: /^write:repository$/u, unneeded: /^write:issue$/u, identity: /^read:user$/u },
  bitbucket: {
    essential: /pullrequest/u,
    unneeded: /^(?:repository:write|write:repository:bitbucket)$|pipeline/u,
    identity: /^(?:account|read:user:bitbucket)$/u,
  },
  bitbucketDataCenter: { essential: /^Repository write$/u, unneeded: none, identity: none },
  git: { essential: none, unneeded: none, identity: none },
};

/**
 * Asks a forge whose a person's token is, and whether pull requests can be opened with it. Nothing is changed there. Never throws for
 * what the forge answers.
 * @param credential an error: it can't be opened
 */
export async function checkAccount(
  place: AccountPlace,
  credential: { readonly token: string; readonly username?: string | undefined } | Error,
  options: { readonly reach: GuardedReach; readonly signal: AbortSignal },
): Promise<ConnectionCheck> {
  const given = credential instanceof Error ? credential : { type: "token" as const, ...credential };
  const { account, accountId = null, problems } = await checkConnection(place, given, { ...options, configured: [] });
  const relevant = problems
    .filter(({ missing }) => !needs[place.kind].unneeded.test(missing))
    .map(inWordsOf(place.kind));
  const isUnknown = account === null && !relevant.some(({ essential }) => essential);
  return { account, accountId, problems: isUnknown ? [...relevant, notUsers] : relevant };
}

/**
 * Whether a check found out about the token itself: the forge named its user, or refused it. A forge that does not
 * answer, or an address that is no forge's, proves nothing about it.
 */
export function isAboutToken({ account, problems }: ConnectionCheck): boolean {
  return account !== null || problems.some(({ missing }) => missing === "a valid token");
}

const notUsers: ConnectionProblem = {
  missing: "whose the token is",
  why: "The forge does not say it, as of a token that belongs to a repository or a project.",
  remedy: "Send a personal access token.",
  essential: true,
};

function inWordsOf(kind: ForgeKind): (problem: ConnectionProblem) => ConnectionProblem {
  const { essential, identity } = needs[kind];
  return (problem) => {
    // Some see only public repositories without it.
    if (essential.test(problem.missing)) return { ...problem, why: "Pull requests can't be opened without it." };
    if (endsSoon.test(problem.missing)) {
      return { ...problem, why: "Once it has ended, pull requests are opened by Offstage's own account." };
    }
    if (!identity.test(problem.missing)) return problem;
    return { ...problem, why: "The forge does not say whose the token is without it.", essential: true };
  };
}
