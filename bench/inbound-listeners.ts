import { createHmac, randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { WebhookDefinition } from "@octokit/webhooks-examples";
import { openDatabase, type Database } from "../src/database/database.ts";
import type { Expression } from "../src/domain/automations/condition.ts";
import type { RepositoryAddress } from "../src/domain/repositories/repository.ts";
import { createForges } from "../src/forges/forges.ts";
import { createLogger } from "../src/observability.ts";
import { createTemplates } from "../src/templates/templates.ts";
import { decideNext } from "../src/worker/events/event-decisions.ts";
import { benchKey, type ApiServerReady } from "./api-server.ts";
import type { Post } from "./poster.ts";
import { load, summarize } from "./measure.ts";

const listeners = 10_000;

/** How long one event's conditions take, of which each differs. */
export async function manyConditions(event: Record<string, unknown>): Promise<string> {
  const templates = createTemplates();
  const expressions: Expression[] = Array.from({ length: listeners }, (_, n) => ({
    condition: `event.issue.labels.exists(label, label.name == 'bug') && event.issue.number == ${n}`,
    key: "'issue ' + string(event.issue.number)",
    trigger: { id: String(n), type: "forge" },
  }));
  const asker = { organizationId: "bench", id: "bench" };
  const times: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    const began = performance.now();
    const verdicts = await templates.evaluate(expressions, { event, repository: null }, asker);
    times.push(performance.now() - began);
    if (verdicts.filter((each) => "passes" in each && each.passes).length !== 1) throw new Error("one must pass");
  }
  await templates.close();
  const [cold = 0, ...warm] = times;
  return `${listeners} conditions with one event: ${cold.toFixed(0)} ms the first time, ${Math.min(...warm).toFixed(0)} ms once compiled\n`;
}

/**
 * 10,000 automations that listen to one connection, of which an event is for one: how quickly its delivery is answered, and how long a
 * worker takes until all are decided. Beside it an event to which none listens.
 * @param durationMs for each that is measured
 */
export async function manyListeners(
  { url, databaseUrl }: ApiServerReady,
  post: Post,
  durationMs: number,
): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "offstage-bench-"));
  const database = await openDatabase({ url: databaseUrl, directory, logger: createLogger("error") });
  const authorized = { authorization: `Bearer ${benchKey}` };
  const connection = JSON.parse(
    await post(
      new URL("/connection/create", url).href,
      { kind: "github", credential: { type: "token", token: "bench" } },
      authorized,
    ),
  ) as { id: string; webhookSecret: string };
  await addListeners(database, connection.id);
  const [opened, push] = await Promise.all([example("issues", "opened"), example("push")]);
  const deliver = (name: string, payload: object) => async (): Promise<void> => {
    const body = JSON.stringify(payload);
    const signature = `sha256=${createHmac("sha256", connection.webhookSecret).update(body).digest("hex")}`;
    await post(new URL(`/hook/forge/${connection.id}`, url).href, body, {
      "x-github-event": name,
      "x-github-delivery": randomUUID(),
      "x-hub-signature-256": signature,
    });
  };
  let n = 0;
  const issue = (): Promise<void> =>
    deliver("issues", { ...opened, issue: { ...opened["issue"], id: (n += 1), number: n } })();
  const lines = [];
  for (const concurrency of [1, 32]) {
    for (const [what, work] of [
      ["that all list", issue],
      ["that none lists", deliver("push", push)],
    ] as const) {
      const { perSecond, p50Ms, p99Ms } = summarize(await load(work, { concurrency, durationMs }), durationMs);
      lines.push(
        `  an event ${what}, ${concurrency} at once: ${perSecond.toFixed(0)} a second, p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms\n`,
      );
    }
  }
  lines.push(await decideOne(database, issue));
  await database.close();
  await rm(directory, { recursive: true });
  return `${listeners} automations that listen to one connection:\n${lines.join("")}`;
}

/** As the API would write them, each with a condition of its own. */
async function addListeners(database: Database, connectionId: string): Promise<void> {
  await database.pool.query(
    `with made as (
       insert into automation (id, organization_id, name, macro, instructions, priority, repository_ids, paused)
       select gen_random_uuid(), organization.id, 'Listener ' || n, 'listener-' || n, 'Work', 5, '{}', false
       from organization, generate_series(1, $2::integer) as n returning id, organization_id, macro)
     insert into trigger (id, organization_id, automation_id, type, position, condition, settings)
     select gen_random_uuid(), organization_id, id, 'forge', 0,
       'event.issue.labels.exists(label, label.startsWith(''b'')) && event.issue.number == ' || split_part(macro, '-', 2),
       jsonb_build_object('connectionId', $1::text, 'events', jsonb_build_array('issue.opened'), 'repositories', '[]'::jsonb)
     from made`,
    [connectionId, listeners],
  );
  await database.pool.query("analyze trigger, automation");
}

/** How long a worker takes to decide one event for all that listen. */
async function decideOne(database: Database, deliver: () => Promise<void>): Promise<string> {
  const templates = createTemplates();
  const forges = createForges([]);
  const options = {
    database,
    templates,
    logger: createLogger("error"),
    worker: "bench",
    keyOf: (address: RepositoryAddress) => Promise.resolve(forges.keyOf(address)),
  };
  const times: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    await database.pool.query("update arrival set outcome = 'filtered' where outcome is null");
    await deliver();
    const began = performance.now();
    if (!(await decideNext(options))) throw new Error("no event waits");
    times.push(performance.now() - began);
  }
  await templates.close();
  const [cold = 0, ...warm] = times;
  return `  decided for all of them: ${cold.toFixed(0)} ms the first time, ${Math.min(...warm).toFixed(0)} ms once compiled\n`;
}

/** A payload that GitHub publishes. */
export async function example(name: string, action?: string): Promise<Record<string, object>> {
  const { default: all } = (await import("@octokit/webhooks-examples", { with: { type: "json" } })) as unknown as {
    default: WebhookDefinition[];
  };
  const examples = (all.find((each) => each.name === name)?.examples ?? []) as unknown as Record<string, object>[];
  const found = examples.find((each) => action === undefined || (each["action"] as unknown) === action);
  if (found === undefined) throw new Error(`GitHub publishes no example of ${name}`);
  return found;
}
