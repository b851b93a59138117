import type { Repository } from "../../domain/repositories/repository.ts";

/** Whether no forge is known at a repository's address that would have pull requests. */
export function isPlainGit({ integration }: Repository): boolean {
  return integration === undefined || integration.type === "git";
}
