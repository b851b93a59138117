import { NotFoundError, SessionError } from "../../../domain/errors/errors.ts";
import { firstOf } from "../../../domain/fields/text.ts";
import { notReadRule, type AllowedFinding } from "../../../domain/repositories/finding.ts";
import { saveRepository } from "../../../store/queue/recorded-work.ts";
import { getAllowedFindings } from "../../../store/repositories/repository-settings.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";
import type { Clone, SessionRepository } from "../../clones/clone.ts";
import type { ExportedWork } from "../../export/export-clone.ts";
import { knownOf } from "../../git/remote-repository.ts";
import type { LfsFile } from "../../lfs/pointers.ts";
import { scanPush, type FindingLocation, type PushFindings } from "../../secret-scan/push-scan.ts";
import { lfsObjects } from "./lfs-files.ts";
import { ObjectsError } from "../../git/pushed-objects.ts";

/** Most locations that a failure names. */
const namedLimit = 5;

/**
 * Searches a repository's new commits for secrets, since a push can't be undone. A known secret in any commit stops them all.
 * So does what looks like a secret, or could not be searched, unless the repository allows it.
 * @throws SessionError secret_in_work, token_in_work, resources_exhausted
 */
export async function requireNoSecret(
  attempt: Pick<Attempt, "session" | "mask" | "found" | "secrets" | "signal">,
  { database }: Pick<AttemptServices, "database">,
  clone: Clone,
  work: ExportedWork,
  lfs: readonly LfsFile[],
): Promise<void> {
  const { session, mask } = attempt;
  const { repository } = clone;
  const allowed = await allowedIn(database, session.organizationId, repository);
  if (mask.text(session.branchName) !== session.branchName) throw secretInBranch();
  const found = await scanCommits(attempt, clone, { head: work.headSha, lfs }, allowed);
  if (found.known.length > 0) throw secretInWork(attempt, found.known);
  if (found.shapes.length > 0) {
    const { headSha, patch, patchTruncated } = work;
    for (const shape of found.shapes) attempt.found.add(valueOf(shape));
    const shown = mask.with([...attempt.found]).text(patch);
    // Saved again with the findings masked.
    await saveRepository(database, session, repository.position, { headSha, patch: shown, patchTruncated });
    throw tokenInWork(repository, found.shapes);
  }
  if (found.notRead.length > 0) throw notReadInWork(repository, found.notRead);
}

/** The findings that a repository allows; none if it was disconnected meanwhile. */
async function allowedIn(
  database: AttemptServices["database"],
  organizationId: string,
  { id }: SessionRepository,
): Promise<AllowedFinding[]> {
  try {
    return await getAllowedFindings(database, organizationId, id);
  } catch (error) {
    if (error instanceof NotFoundError) return [];
    throw error;
  }
}

async function scanCommits(
  { mask, signal }: Pick<Attempt, "mask" | "signal">,
  clone: Clone,
  { head, lfs }: { readonly head: string; readonly lfs: readonly LfsFile[] },
  allowed: readonly AllowedFinding[],
): Promise<PushFindings> {
  try {
    return await scanPush({
      cwd: clone.mirror.path,
      known: knownOf(clone),
      head,
      further: lfsObjects(clone.mirror.path, lfs),
      secrets: mask.secrets,
      allowed,
      signal,
    });
  } catch (error) {
    if (!(error instanceof ObjectsError)) throw error;
    throw new SessionError(
      {
        code: "resources_exhausted",
        reason: "The commits have more in them than can be searched for secrets: nothing was pushed.",
        retryable: false,
        remedy: "Tell the agent in a message to commit less, or start a new session.",
      },
      { cause: error },
    );
  }
}

function valueOf({ value }: PushFindings["shapes"][number]): string {
  return Buffer.from(value, "latin1").toString("utf8");
}

function secretInBranch(): SessionError {
  return new SessionError({
    code: "secret_in_work",
    reason: "The name of the branch holds the value of a secret: nothing was pushed.",
    retryable: false,
    remedy: "Start a new session with another branchName. Change the value, because the session's maker knows it.",
  });
}

function secretInWork(
  { mask, secrets }: Pick<Attempt, "mask" | "secrets">,
  known: PushFindings["known"],
): SessionError {
  const names = known.map(({ owner }) => {
    const value = mask.secrets[owner];
    return secrets.find((secret) => secret.value === value)?.name ?? "a key of this server";
  });
  return new SessionError({
    code: "secret_in_work",
    reason: `The commits hold the value of ${[...new Set(names)].join(", ")} in ${listed(known.map(locationText))}: nothing was pushed.`,
    retryable: false,
    remedy:
      "Send a message that asks the agent to remove it from every commit, or start a new session. Change the value, because the agent has seen it.",
  });
}

function tokenInWork({ id }: SessionRepository, shapes: PushFindings["shapes"]): SessionError {
  const values = shapes.map(valueOf);
  // A path may contain the value too.
  const hidden = (text: string): string => values.reduce((shown, value) => shown.replaceAll(value, "[secret]"), text);
  const locations = shapes.map(
    (shape) =>
      `${hidden(locationText(shape))}, line ${shape.line} (rule ${shape.rule}, fingerprint ${shape.fingerprint})`,
  );
  const { fingerprint = "" } = shapes[0] ?? {};
  return new SessionError({
    code: "token_in_work",
    reason: `What looks like a secret stands in ${listed([...new Set(locations)])}: nothing was pushed.`,
    retryable: true,
    remedy: `Send a message that asks the agent to remove it from every commit, and revoke it if it is real. If it is none, an admin allows it by POST /repository/${id}/allow-finding with {"fingerprint":"${fingerprint}"}; then retry.`,
  });
}

function notReadInWork({ id }: SessionRepository, notRead: PushFindings["notRead"]): SessionError {
  const locations = notRead.map((one) => `${locationText(one)}, because ${one.why}`);
  const body = JSON.stringify({ path: notRead[0]?.path, rule: notReadRule });
  return new SessionError({
    code: "resources_exhausted",
    reason: `Not everything could be searched for secrets: ${listed(locations)}. Nothing was pushed.`,
    retryable: true,
    remedy: `Tell the agent in a message to take it out of every commit. If it may be pushed unread, an admin allows it by POST /repository/${id}/allow-finding with ${body}; then retry.`,
  });
}

function locationText({ path, commit, inName }: FindingLocation): string {
  const short = commit.slice(0, 10);
  if (path === "") return inName ? `commit ${short} itself` : `a file of commit ${short}`;
  return `${inName ? "a name in " : ""}${path.slice(0, 200)} of commit ${short}`;
}

function listed(locations: readonly string[]): string {
  return firstOf(locations, namedLimit, "; ");
}
