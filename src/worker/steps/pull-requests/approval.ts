import { SessionError } from "../../../domain/errors/errors.ts";
import { approvalWords, type ApprovalRules } from "../../../domain/repositories/approval.ts";
import type { Forge } from "../../../forges/forge.ts";
import type { Attempt } from "../../attempt/attempt.ts";
import type { Clone } from "../../clones/clone.ts";

/**
 * Who may approve a clone's pull request, as far as the forge says.
 * @returns null if it does not; an unavailable forge is no failure
 */
export async function readApproval(
  { signal, logger }: Pick<Attempt, "signal" | "logger">,
  forge: Pick<Forge, "readApprovalRules">,
  { address, repository, targetBranch }: Pick<Clone, "address" | "repository" | "targetBranch">,
): Promise<ApprovalRules | null> {
  if (forge.readApprovalRules === undefined) return null;
  try {
    return await forge.readApprovalRules(address, targetBranch, signal);
  } catch (error) {
    if (!(error instanceof SessionError)) throw error;
    logger.info({ err: error, repository: repository.name }, "could not ask who may approve a pull request");
    return null;
  }
}

/** The approval of an open pull request, as a notice of the session reports it. */
export interface ReportedApproval {
  readonly forge: Pick<Forge, "name">;
  /** Of the repository. */
  readonly name: string;
  readonly approval: ApprovalRules;
  /** Whether it was opened in the name of the person who asked. The session does not keep that name. */
  readonly isRequesters: boolean;
}

/** Reports on the session who may approve its pull request, if there is a special rule. */
export async function noticeApproval(
  { emit }: Pick<Attempt, "emit">,
  { forge, name, approval, isRequesters }: ReportedApproval,
): Promise<void> {
  const words = approvalWords(approval, isRequesters ? "the person who asked" : null);
  if (words === null) return;
  const text = `On ${forge.name}, for the pull request of ${name}: ${words}.`;
  await emit({ type: "notice", data: { level: "info", text } });
}
