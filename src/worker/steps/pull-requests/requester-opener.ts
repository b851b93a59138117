import type { OpenedAccount, Forge, PullRequestOpener } from "../../../forges/forge.ts";
import { servesAddress } from "../../../forges/serves.ts";
import { noteAccountRefusal, openAccountsOfRequester } from "../../../store/secrets/opened-accounts.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";
import type { Clone } from "../../clones/clone.ts";

/** The person who asked for a session, as far as their own account opens its pull requests. */
export interface Requester {
  readonly userId: string;
  /** The account's name on the forge. */
  readonly accountName: string;
  readonly opener: PullRequestOpener;
}

/**
 * The person in whose name the pull request of a clone's work is to be opened: the session's requester, if they
 * connected an account that serves the repository, and it was not refused.
 * @returns no account if there is none; with a reason for people if they did connect one
 */
export async function requesterFor(
  attempt: Attempt,
  { database, vault }: Pick<AttemptServices, "database" | "vault">,
  forge: Forge,
  { address, repository }: Pick<Clone, "address" | "repository">,
): Promise<{ readonly requester: Requester | null; readonly whyNot: string | null }> {
  const accounts = await openAccountsOfRequester(database, vault, attempt.session, repository.id);
  const [account] = accounts
    .filter(({ webUrl }) => servesAddress(webUrl, address, true))
    .toSorted((a, b) => b.webUrl.length - a.webUrl.length);
  if (account === undefined) return { requester: null, whyNot: null };
  const { user, name, refused, token } = account;
  // The session keeps these words, and others see it: they name neither the person, who may be erased, nor the account.
  const not = (reason: string) => ({
    requester: null,
    whyNot: `The pull request of ${repository.name} is not opened in the name of the person who asked: ${reason}`,
  });
  if (token instanceof Error) return not(`the token of their account can't be opened: ${token.message}.`);
  if (refused !== null) {
    return not(`the forge refused their account before. They can replace or check it in the settings.`);
  }
  const opened: OpenedAccount = { ...account, token, username: account.username ?? undefined };
  const call = (await forge.as?.(opened)) ?? null;
  if (call === null) {
    return not(`the forge's API is not at ${account.apiUrl} any more, where their account was checked.`);
  }
  const refusedNow: PullRequestOpener["refused"] = async ({ isOfCredential, words }) => {
    await noteAccountRefusal(database, account, { words, repositoryId: isOfCredential ? null : repository.id });
    await attempt.emit({
      type: "notice",
      data: {
        level: "warning",
        text: `${forge.name} did not let the person who asked open the pull request of ${repository.name}. Offstage opens it with its own account, and does not try theirs here again until they replace or check it in the settings, which tell why.`,
      },
    });
  };
  const limited = (): Promise<void> =>
    attempt.emit({
      type: "notice",
      data: {
        level: "info",
        text: `${forge.name} takes no request of the person who asked now. Offstage opens the pull request of ${repository.name} with its own account.`,
      },
    });
  const opener = { call, refused: refusedNow, limited };
  return { requester: { userId: user.id, accountName: name, opener }, whyNot: null };
}
