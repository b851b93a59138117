import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ForgeEvent } from "../../../src/domain/automations/forge-event.ts";
import { parseRepositoryUrl, type RepositoryAddress } from "../../../src/domain/repositories/repository.ts";
import type { Feedback } from "../../../src/forges/feedback/feedback.ts";
import type { Forge } from "../../../src/forges/forge.ts";
import { createForges } from "../../../src/forges/forges.ts";
import { recordDeliveredRepository } from "../../../src/store/automations/delivered-runs.ts";
import { prepareWorkspace } from "../../../src/worker/steps/prepare.ts";
import {
  readDeliveredEvent,
  readEventFacts,
  wantedPullRequest,
} from "../../../src/worker/steps/agent/delivered-event.ts";
import { addAutomation } from "../../store/fixtures.ts";
import { repositoryOf } from "../repository-of.ts";
import { createStepWorld, type StepWorld } from "./step-world.ts";

const pullRequest = {
  number: 7,
  title: "Add it",
  body: "",
  url: "https://git.example.com/acme/app/pull/7",
  state: "open" as const,
  draft: false,
  head: { branch: "work", sha: "1", repositoryUrl: "https://git.example.com/acme/app.git" },
  target: "main",
  labels: [],
  author: null,
};
const event: ForgeEvent = {
  name: "pullRequest.opened",
  forge: "github",
  repository: null,
  actor: null,
  payload: {},
  pullRequest,
};
const failed: ForgeEvent = {
  name: "checks.failed",
  forge: "github",
  repository: null,
  actor: null,
  payload: {},
  checks: { kind: "workflow", id: "5", name: "ci", url: null, sha: "1", branch: null, pullRequests: [] },
};

describe("the delivered event of a session's run", () => {
  let world: StepWorld;
  beforeEach(async () => {
    world = await createStepWorld(["a-value-that-is-sealed"]);
  });
  afterEach(() => world.close());

  /** A run of an automation with this payload, which a connection delivered, or a caller made up. */
  async function begin(payload: object, isDelivered: boolean) {
    const attempt = await world.begin();
    const { session } = attempt;
    const { pool } = world.database;
    const automationId = await addAutomation(
      world.database,
      session.organizationId,
      `delivered-${crypto.randomUUID().slice(0, 8)}`,
    );
    const connectionId = crypto.randomUUID();
    await pool.query(
      `insert into forge_connection (id, organization_id, kind, name, web_url, credential, state, sealed, master_key)
       values ($1, $2, 'github', 'GitHub', $3, 'token', 'ok', '', '')`,
      [connectionId, session.organizationId, `https://${connectionId}.example.com`],
    );
    const [repository] = session.repositories;
    if (isDelivered)
      await recordDeliveredRepository(pool, session.sessionId, { repositoryId: repository?.id ?? "", connectionId });
    return { ...attempt, session: { ...session, automationId, payload } };
  }

  test("is the event that a connection delivered, with its repository", async () => {
    const attempt = await begin(event, true);
    const delivered = await readDeliveredEvent(attempt, world);
    expect(delivered).toMatchObject({ event: { pullRequest: { number: 7 } }, repository: { name: "acme/app" } });
  });

  test("is nothing if only the payload says so, if it is of another form, and if no automation runs", async () => {
    expect(await readDeliveredEvent(await begin(event, false), world)).toBeNull();
    expect(await readDeliveredEvent(await begin({ name: "pullRequest.opened" }, true), world)).toBeNull();
    const delivered = await begin(event, true);
    expect(await readDeliveredEvent({ session: { ...delivered.session, automationId: null } }, world)).toBeNull();
  });

  /** A forge whose one failed job has this log, or can't be asked. */
  const withLogs = (readLogEnd: () => Promise<string>) => ({
    forgeOf: () =>
      ({
        ...world.worker("one").forgeOf(parseRepositoryUrl(`${world.forge.url}/acme/app`) as RepositoryAddress),
        feedback: { failedJobs: () => Promise.resolve([{ id: "1", name: "build" }]), readLogEnd } as Partial<Feedback>,
      }) as Forge,
  });

  test("comes with the ends of the logs of what failed, masked", async () => {
    const attempt = await begin(failed, true);
    const delivered = await readDeliveredEvent(attempt, world);
    const services = withLogs(() => Promise.resolve("It broke: a-value-that-is-sealed"));
    expect(await readEventFacts(attempt, services, delivered, [])).toEqual({
      pullRequest: null,
      logs: "build:\nIt broke: [secret]",
    });
  });

  test("comes without logs if they can't be read, and with nothing once the first turn is done", async () => {
    const attempt = await begin(failed, true);
    const delivered = await readDeliveredEvent(attempt, world);
    const away = withLogs(() => Promise.reject(new Error("away")));
    expect(await readEventFacts(attempt, away, delivered, [])).toEqual({ pullRequest: null, logs: null });
    const later = { ...attempt, session: { ...attempt.session, summary: "Done." } };
    expect(await readEventFacts(later, away, delivered, [])).toBeNull();
  });

  test("says of a pull request whose commits are not in the clone that they are not", async () => {
    const attempt = await begin(event, true);
    const services = world.worker("one");
    const { clones } = await prepareWorkspace({ ...attempt, session: { ...attempt.session, payload: null } }, services);
    const delivered = await readDeliveredEvent(attempt, world);
    expect(await readEventFacts(attempt, services, delivered, clones)).toEqual({
      pullRequest: { number: 7, fetched: null },
      logs: null,
    });
  });
});

describe("the pull request that a clone is to have", () => {
  const settings = { webUrl: "https://git.example.com", apiUrl: "https://git.example.com/api", token: "t" } as const;
  const servicesOf = (kind: "github" | "bitbucket") => {
    const { forgeOf, keyOf: repositoryKeyOf } = createForges([{ kind, ...settings }]);
    return { forgeOf, repositoryKeyOf };
  };
  const repository = repositoryOf("app");
  const delivered = { event, repository };

  test("is that of the event, by the forge's own ref for it", () => {
    const wanted = wantedPullRequest(delivered, repository, servicesOf("github"));
    expect(wanted).toEqual({ number: 7, ref: "refs/pull/7/head", target: "main" });
  });

  test("is the branch on a forge without such refs, if it is the repository's own", () => {
    expect(wantedPullRequest(delivered, repository, servicesOf("bitbucket"))?.ref).toBe("refs/heads/work");
    const head = { ...pullRequest.head, repositoryUrl: "https://git.example.com/somebody/app" };
    const ofFork = { ...delivered, event: { ...event, pullRequest: { ...pullRequest, head } } };
    expect(wantedPullRequest(ofFork, repository, servicesOf("bitbucket"))?.ref).toBeNull();
  });

  test("has no names that are none of git's", () => {
    const head = { ...pullRequest.head, branch: "--upload-pack=x" };
    const odd = { ...delivered, event: { ...event, pullRequest: { ...pullRequest, head, target: "a..b" } } };
    expect(wantedPullRequest(odd, repository, servicesOf("bitbucket"))).toEqual({ number: 7, ref: null, target: null });
  });

  test("is none of another repository, of an event without one, and without a delivery", () => {
    const services = servicesOf("github");
    expect(wantedPullRequest(delivered, repositoryOf("web"), services)).toBeUndefined();
    expect(wantedPullRequest({ event: failed, repository }, repository, services)).toBeUndefined();
    expect(wantedPullRequest(null, repository, services)).toBeUndefined();
  });
});
