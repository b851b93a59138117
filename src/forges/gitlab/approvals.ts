import type { ApprovalRules } from "../../domain/repositories/approval.ts";
import type { ForgeAnswer } from "../http/http.ts";

/** Fields used of a project's approvals (https://docs.gitlab.com/api/merge_request_approvals/#project-approval-settings). */
interface Approvals {
  readonly reset_approvals_on_push?: boolean | null;
  readonly merge_requests_author_approval?: boolean | null;
  readonly merge_requests_disable_committers_approval?: boolean | null;
}

/**
 * GitLab's rules for who may approve merge requests of a project.
 * @returns null if it does not say: only its paid tiers have these settings, and not every role may read them
 */
export function gitLabApprovals({ status, body }: Pick<ForgeAnswer, "status" | "body">): ApprovalRules | null {
  if (status !== 200) return null;
  const approvals = body as Approvals;
  const author = approvals.merge_requests_author_approval ?? null;
  return {
    excludesPusher: approvals.merge_requests_disable_committers_approval ?? null,
    excludesAuthor: author === null ? null : !author,
    pushDismisses: approvals.reset_approvals_on_push ?? null,
  };
}
