import { SessionError } from "../../../domain/errors/errors.ts";
import { failureOfRefused, type RefusedRepository } from "../../../domain/errors/refused-repositories.ts";
import type { Attempt } from "../../attempt/attempt.ts";
import { isFailure } from "../../attempt/end.ts";
import type { Clone } from "../../clones/clone.ts";

/** How far the work on the repositories that refused nothing has come. */
export interface Delivered {
  /** Names of the repositories whose branch is pushed. */
  readonly pushed: readonly string[];
  /** Those of them that were delivered: their pull request is open, or their forge has none. */
  readonly delivered: readonly string[];
}

/**
 * Converts one repository's error to a refusal, so that the others are not held back.
 * @throws the error if it is no refusal, but ends the attempt
 */
export function refusalOf(
  error: unknown,
  { repository }: Pick<Clone, "repository">,
  { signal }: Pick<Attempt, "signal">,
): RefusedRepository {
  if (!(error instanceof SessionError) || !isFailure(error, signal)) throw error;
  return { name: repository.name, error };
}

/** The failure of a session whose work some repositories refused; of a session on one, it is that repository's own. */
export function undelivered(
  {
    session: { repositories, branchName, pullRequestsTogether },
  }: { readonly session: Pick<Attempt["session"], "repositories" | "branchName" | "pullRequestsTogether"> },
  refused: readonly RefusedRepository[],
  { pushed, delivered }: Delivered,
): SessionError {
  const [only] = refused;
  if (repositories.length === 1 && only !== undefined) return only.error;
  const isDelivered = delivered.length > 0 ? `The work on ${delivered.join(", ")} is delivered.` : "";
  if (!pullRequestsTogether) return failureOfRefused(refused, isDelivered);
  const stays = pushed.length === 0 ? "" : ` The branch ${branchName} is pushed to ${pushed.join(", ")}, and stays.`;
  const none = "No pull request was opened, since this session opens them together or not at all.";
  return failureOfRefused(refused, `${isDelivered === "" ? none : isDelivered}${stays}`);
}
