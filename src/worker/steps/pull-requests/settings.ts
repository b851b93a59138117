import type { Database } from "../../../database/database.ts";
import { pullRequestFields, type PullRequestSettings } from "../../../domain/repositories/pull-request-settings.ts";
import type { ForgePullRequest } from "../../../forges/forge.ts";
import { answersChannel, queueAnswer } from "../../../store/answers/answers.ts";
import type { Attempt } from "../../attempt/attempt.ts";
import type { Clone } from "../../clones/clone.ts";

/** A session's pull request, its settings, and what the forge said when it was opened. */
interface Opened {
  readonly opened: Pick<ForgePullRequest, "number" | "mark" | "draft"> & { readonly created: boolean };
  readonly repository: Clone["repository"];
  readonly settings: PullRequestSettings;
}

/** Applies the settings of a pull request that the session opened; one that was opened otherwise stays as it is. */
export async function applyPullRequestSettings(
  { session, emit }: Pick<Attempt, "session" | "emit">,
  database: Database,
  { opened, repository, settings }: Opened,
): Promise<void> {
  const { number, created, mark, draft } = opened;
  if (!created && mark?.sessionId !== session.sessionId) return;
  await queueFields(session, database, { repositoryId: repository.id, number, settings });
  if (!settings.draft || !created || draft !== false) return;
  const text = `The pull request of ${repository.name} is no draft: its forge has none for this repository.`;
  await emit({ type: "notice", data: { level: "warning", text } });
}

/**
 * Queues a pull request's labels, reviewers and assignees in the outbox: each kind once, however often it is called, so
 * that what people remove stays removed. Names that the forge does not take are listed among the session's answers, and
 * fail nothing.
 */
async function queueFields(
  { organizationId, sessionId }: Attempt["session"],
  database: Database,
  {
    repositoryId,
    number,
    settings,
  }: { readonly repositoryId: string; readonly number: number; readonly settings: PullRequestSettings },
): Promise<void> {
  const wanted = pullRequestFields.filter((field) => settings[field].length > 0);
  for (const field of wanted) {
    await queueAnswer(database.pool, {
      organizationId,
      sessionId,
      repositoryId,
      key: `pull request ${repositoryId} ${number} ${field}`,
      action: { kind: "settings", subject: { kind: "pullRequest", number }, field, names: settings[field] },
      text: "",
    });
  }
  if (wanted.length > 0) database.notify(answersChannel, "");
}
