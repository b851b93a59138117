import type { Database } from "../database/database.ts";
import type { ForgeReply } from "../domain/automations/reply-target.ts";
import type { ForgeEvent } from "../domain/automations/forge-event.ts";
import { readForgeEvent, subjectOf } from "../domain/automations/event-subject.ts";
import { isBranchName } from "../domain/fields/git-ref.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../domain/repositories/repository.ts";
import { servesAddress } from "../forges/serves.ts";
import { askForge, type ForgeQuestions } from "./conversations/ask-forge.ts";
import type { ClaimedJob } from "../store/automations/jobs.ts";
import { readDeliveredJob, type DeliveredJob } from "../store/automations/delivered-runs.ts";

type JobRepository = ClaimedJob["automation"]["repositories"][number];

/** A run whose event was delivered by a forge and is about one of the run's repositories. */
export interface DeliveredRun extends Pick<DeliveredJob, "connectionId" | "pushTo"> {
  readonly event: ForgeEvent;
  /** The event's. */
  readonly repository: JobRepository;
  /** Where the result is reported; null: nowhere. */
  readonly reply: ForgeReply | null;
}

/** Dependencies for finding the delivered run. */
export interface DeliveredRunServices extends ForgeQuestions {
  readonly database: Database;
  /** A key that is equal for all addresses of one repository. */
  readonly keyOf: (address: RepositoryAddress, organizationId: string) => Promise<string>;
}

/**
 * Finds the event of a job: only if a connection delivered it, about a repository of that connection that the run works
 * on. So no payload can make Offstage answer or read elsewhere.
 * @returns null if there is no such thing; the reason why the run's trigger starts nothing, as an end of a sentence
 */
export async function findDeliveredRun(
  services: DeliveredRunServices,
  job: ClaimedJob,
): Promise<DeliveredRun | null | string> {
  const event = readForgeEvent(job.payload);
  const delivered = event === null ? null : await readDeliveredJob(services.database, job.id);
  if (event === null || delivered === null) return null;
  const { connectionId, pushTo, reply } = delivered;
  const repository = await repositoryOf(services, job, { event, delivered });
  if (repository === null)
    return pushTo === "pullRequest" ? "the pull request is of no repository that the automation works on" : null;
  const place = reply === "subject" ? replyOf(event, connectionId, repository.id) : null;
  const run = { event, repository, connectionId, pushTo, reply: place };
  if (pushTo !== "pullRequest") return run;
  const whole = { ...run, event: await withBranch(services, job, run) };
  return (await whyNotPushedTo(services, job, whole)) ?? whole;
}

/**
 * The event with the branch of its pull request, which the forge is asked for if the delivery does not name it, as that of a comment on
 * GitHub.
 * @throws UnansweredError if the forge does not answer now
 */
async function withBranch(
  services: DeliveredRunServices,
  { organizationId }: ClaimedJob,
  { event, repository }: DeliveredRun,
): Promise<ForgeEvent> {
  const { pullRequest } = event;
  if (pullRequest === undefined || (pullRequest.head !== null && pullRequest.target !== null)) return event;
  const read = await askForge(services, { ...repository, organizationId }, (forge, address, signal) =>
    forge.readPullRequest(address, pullRequest.number, signal),
  );
  if (read?.isFromHere === undefined) return event;
  const { head: branch, headSha: sha, target, state, isFromHere } = read;
  const head = { branch, sha, repositoryUrl: isFromHere ? repository.url : null };
  return { ...event, pullRequest: { ...pullRequest, state, head, target } };
}

/** A confidential event is answered only in its thread, which is as confidential; without one, not at all. */
function replyOf(event: ForgeEvent, connectionId: string, repositoryId: string): ForgeReply | null {
  const subject = subjectOf(event);
  if (subject === null) return null;
  const target = { service: "forge", connectionId, repositoryId, subject } as const;
  if (event.confidential !== true || event.comment === undefined) return { target, threadId: null };
  const { threadId } = event.comment;
  return threadId === null ? null : { target, threadId };
}

async function repositoryOf(
  { keyOf }: DeliveredRunServices,
  { organizationId, automation }: ClaimedJob,
  { event, delivered }: { readonly event: ForgeEvent; readonly delivered: DeliveredJob },
): Promise<JobRepository | null> {
  const address = addressIn(event.repository?.url ?? null);
  if (address === null || !servesAddress(delivered.webUrl, address, true)) return null;
  const key = await keyOf(address, organizationId);
  for (const repository of automation.repositories) {
    const own = addressIn(repository.url);
    if (own !== null && (await keyOf(own, organizationId)) === key) return repository;
  }
  return null;
}

/** Why a run can't go on with the pull request's own branch; null: it can. */
async function whyNotPushedTo(
  { keyOf }: DeliveredRunServices,
  { organizationId }: ClaimedJob,
  { event: { pullRequest, repository: delivered }, repository }: DeliveredRun,
): Promise<string | null> {
  if (pullRequest === undefined) return "the event is about no pull request";
  const { number, head, target, state } = pullRequest;
  if (state !== "open") return `pull request #${number} is ${state}`;
  if (head === null || target === null) return `the delivery does not say which branch pull request #${number} has`;
  if (!isBranchName(head.branch) || !isBranchName(target))
    return `pull request #${number} has a branch whose name is none`;
  const [from, own] = [addressIn(head.repositoryUrl), addressIn(repository.url)];
  if (from === null || own === null || (await keyOf(from, organizationId)) !== (await keyOf(own, organizationId)))
    return `the branch of pull request #${number} is in another repository, which Offstage does not push to`;
  // As of a pull request that brings it to a branch of releases: nobody would review what is pushed there.
  if (head.branch === delivered?.defaultBranch)
    return `the branch of pull request #${number} is the repository's default branch, which no run pushes to`;
  return null;
}

function addressIn(url: string | null): RepositoryAddress | null {
  const address = url === null ? null : parseRepositoryUrl(url);
  // A delivery must not name a folder of this machine.
  return address === null || isAddressProblem(address) || address.local ? null : address;
}
