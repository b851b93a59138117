import { stripVTControlCharacters } from "node:util";
import { cutAtWord } from "../../../domain/fields/text.ts";
import { SessionError } from "../../../domain/errors/errors.ts";
import { remoteError } from "../remote-error.ts";

/** Git's output about a failed push. */
export interface RefusedPush {
  readonly url: string;
  readonly branch: string;
  /** stdout of `git push --porcelain`. */
  readonly stdout: string;
  readonly stderr: string;
  /** How long the server asked to wait, in ms; null or omitted if it did not. */
  readonly retryAfterMs?: number | null;
}

/** Most characters of a refusal's words. */
const wordsLimit = 1_000;

/** Reasons of git's own, in brackets, that mean that the branch moved while it was pushed (git-push(1), OUTPUT). */
const movedReasons =
  /non-fast-forward|fetch first|needs force|stale info|cannot lock ref|incorrect old value|reference already exists|failed to update ref/iu;
/** Words of servers that are in trouble themselves, in the lines of their hooks. */
const passingWords =
  /internal (?:server|api|connection)|connection (?:refused|reset|error|timed out)|unreachable|temporarily|try again (?:later|soon|in )|read-only[^.]{0,40}try again|under maintenance|no space left/iu;
/** Reasons of servers that are in trouble themselves: nothing is wrong with the push. */
const passingReasons = /internal (?:server )?error|^failure$|time[d -]*out|temporar|try again|unavailable/iu;
/** The server could not store the pack (git-push(1) prints it in brackets), as with a full disk. */
const unpackerError = /^unpacker error$/u;
/** Words of a server that did not want to store a pack: a broken object, or its size. */
const unwantedPack = /fsck|exceeds|maximum|too large|size limit|quota/iu;

/**
 * Whether a push failed because the branch moved meanwhile: what it is at now has to be fetched first.
 * @param stdout of `git push --porcelain`
 */
export function isBranchMoved(stdout: string): boolean {
  const status = statusOf(stdout);
  return status !== null && movedReasons.test(status.reason);
}

/** Turns a failed push into a failure in the words of git and of the server. */
export function pushError({ url, branch, stdout, stderr, retryAfterMs = null }: RefusedPush): SessionError {
  const status = statusOf(stdout);
  const isHook = /pre-receive|hook declined|protected branch/iu.test(stderr);
  if (status === null && !isHook) return remoteError(url, `${stdout}\n${stderr}`, retryAfterMs);
  const said = [status?.reason ?? "", ...remoteWords(stderr)].filter((words) => words !== "");
  const reason = said.length === 0 ? "it gave no reason" : said.join(": ");
  const words = remoteWords(stderr).join(" ");
  const isUnstored = status !== null && unpackerError.test(status.reason) && !unwantedPack.test(words);
  const isInTheWay = inTheWay.test(`${status?.reason ?? ""} ${words}`);
  const isPassing =
    !isInTheWay &&
    (isUnstored || isBranchMoved(stdout) || passingReasons.test(status?.reason ?? "") || passingWords.test(words));
  return new SessionError({
    code: "push_rejected",
    reason: cutAtWord(`The server rejected the push of ${branch}: ${reason}`, wordsLimit),
    retryable: isPassing,
    remedy: isPassing ? "Retry: the server could not take the branch at that moment." : remedyFor(said.join(" ")),
  });
}

/** Words about a branch whose name is a folder of the pushed one's, or the other way round: git stores both at one path. */
const inTheWay = /'refs\/heads\/[^']+' exists; cannot create '/u;

/** Words of servers that looked into the commits: GitHub's push protection, GitLab's, and limits of a file's size. */
const secrets = /cannot contain secrets|secret detection|secrets? (?:was|were) (?:found|detected)/iu;
const largeFile =
  /file size limit|larger than the maximum|exceeds? (?:the )?(?:maximum )?(?:allowed )?file size|\bGH001\b/iu;
/** GitLab's message about a locked file, in Git LFS (`git lfs lock`) or on the forge itself. */
const locked = /\bpath '.*' is locked (?:in Git LFS )?by\b/iu;

/** The remedy for a final refusal. @param words of the server */
function remedyFor(words: string): string {
  if (inTheWay.test(words)) return "Delete or rename the branch that is in the way, then retry.";
  if (secrets.test(words))
    return "Tell the agent in a message to make its commits anew without the secret, or allow it where the server says, then retry.";
  if (largeFile.test(words))
    return "Tell the agent in a message to make its commits anew without the large file, or with it in Git LFS.";
  if (locked.test(words))
    return "Have the lock released by who holds it (`git lfs unlock`), then retry; or tell the agent in a message to make its commits anew without a change of that file.";
  return "Change the rule or hook that refused the branch, or use another branchName, then retry.";
}

/**
 * The status line of a refused ref: `!`, the ref, and git's word with the reason in brackets, divided by tabs
 * (git-push(1), OUTPUT); null if no ref was refused.
 */
function statusOf(stdout: string): { readonly word: string; readonly reason: string } | null {
  const [, word = "", reason = ""] = /^!\t[^\t]*\t\[([^\]]*)\](?: \((.*)\))?\s*$/mu.exec(stdout) ?? [];
  return word === "" ? null : { word, reason: cleaned(reason) };
}

/** Progress messages of servers: of git itself, GitLab, Gitea and Gerrit. */
const noise =
  /^(?:[A-Z][\w ]*:\s+(?:\d+% \(|\d+, done)|Total \d+ \(delta|(?:\. )?Process(?:ing|ed) \d+ references|Processing changes:|Everything up-to-date)/u;

/** The server's own lines (`remote:`), joined, without progress, colours and empty ones. */
function remoteWords(stderr: string): string[] {
  const lines = stderr
    .split("\n")
    .filter((line) => line.startsWith("remote:"))
    .map((line) =>
      cleaned(
        line
          .split("\r")
          .at(-1)
          ?.replace(/^remote: ?/u, "") ?? "",
      ),
    )
    .filter((line) => line !== "" && !noise.test(line));
  return lines.length === 0 ? [] : [lines.join(" ")];
}

/** A line without escape sequences of terminals, other control characters, and rows of marks around a banner. */
function cleaned(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/\p{Cc}/gu, " ")
    .replace(/([=\-*#~_])\1{4,}|[—─]{2,}/gu, "")
    .replace(/\s+/gu, " ")
    .trim();
}
