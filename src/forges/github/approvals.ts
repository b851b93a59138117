import type { components } from "@octokit/openapi-types";
import type { ApprovalRules } from "../../domain/repositories/approval.ts";
import type { ForgeAnswer } from "../http/http.ts";

/** Fields used of a rule for pull requests (https://docs.github.com/rest/repos/rules#get-rules-for-a-branch). */
interface PullRequestRule {
  readonly type: string;
  readonly parameters?: {
    readonly require_last_push_approval?: boolean;
    readonly dismiss_stale_reviews_on_push?: boolean;
    readonly required_approving_review_count?: number;
  };
}

/** Fields used of a classic protection (https://docs.github.com/rest/branches/branch-protection#get-branch-protection). */
type Protection = Partial<Pick<components["schemas"]["branch-protection"], "required_pull_request_reviews">>;

/**
 * GitHub's rules for who may approve pull requests into a branch.
 * @param rules the answer on the rulesets' rules of the branch, which not every server and plan has
 * @param protection the answer on its classic protection, which GitHub shows only to administrators
 * @returns null if no approval is asked for, or GitHub does not say
 */
export function gitHubApprovals(
  rules: Pick<ForgeAnswer, "status" | "body">,
  protection: Pick<ForgeAnswer, "status" | "body">,
): ApprovalRules | null {
  const listed = rules.status === 200 && Array.isArray(rules.body) ? (rules.body as readonly PullRequestRule[]) : [];
  const ofRules = listed
    .filter(({ type, parameters }) => type === "pull_request" && parameters !== undefined)
    .map(({ parameters = {} }) => ({
      lastPush: parameters.require_last_push_approval === true,
      dismisses: parameters.dismiss_stale_reviews_on_push === true,
      approvals: parameters.required_approving_review_count ?? 0,
    }));
  const reviews = protection.status === 200 ? (protection.body as Protection).required_pull_request_reviews : undefined;
  const ofProtection =
    reviews === undefined
      ? []
      : [
          {
            lastPush: reviews.require_last_push_approval === true,
            dismisses: reviews.dismiss_stale_reviews,
            approvals: reviews.required_approving_review_count ?? 0,
          },
        ];
  const all = [...ofRules, ...ofProtection];
  if (!all.some(({ lastPush, approvals }) => lastPush || approvals > 0)) return null;
  return {
    excludesPusher: all.some(({ lastPush }) => lastPush),
    excludesAuthor: null,
    // On GitHub no author can approve their own pull request.
    excludesEveryAuthor: true,
    pushDismisses: all.some(({ dismisses }) => dismisses),
  };
}
