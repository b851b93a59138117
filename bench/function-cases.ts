import pg from "pg";
import { largestOrganization } from "./fill.ts";

/** The usual case of one function. Its statements run one by one, each in a transaction of its own. */
export interface FunctionCase {
  /** The name of its file in a folder of src/store/sql, without its ending. */
  readonly definition: string;
  /** What the case is, as the function's file has it. */
  readonly usual: string;
  /** Run once, before the calls. */
  readonly setup?: string;
  /** Run before each call. */
  readonly before?: string;
  /** The statement that is measured. */
  readonly call: string;
  /** Run after each call. */
  readonly after?: string;
  /** `call` calls the function for each of so many rows as this counts, which is the same statement without it. */
  readonly without?: string;
  /** Of `call` the time of this trigger alone counts. */
  readonly trigger?: string;
}

const organizationOf = (number: number): string => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
/** Has a budget for each session and for the month, and twenty sessions that run. */
const withBudgets = organizationOf(1);
/** Has one webhook. */
const withWebhook = organizationOf(2);
/** Has a hundred triggers, of which one listens to what Offstage itself tells. */
const withTriggers = organizationOf(3);
/** Automation of each organization but the largest. */
const automationOf = (organization: string): string => organization.replace("-8000-", "-a000-");
const trigger = "00000000-0000-4000-b000-000000000001";
const hookTrigger = "00000000-0000-4000-b000-000000000101";
const connection = "00000000-0000-4000-c000-000000000001";
/** Of the largest organization. */
const automation = "00000000-0000-4000-9000-000000000001";
const hold = "00000000-0000-4000-d000-000000000001";

/** Some 7 kB, as forges send them. */
const payload = pg.escapeLiteral(JSON.stringify({ issue: { number: 7, body: "It fails. ".repeat(700) } }));

const newSession = (organization: string, more: Readonly<Record<string, string>>): string => `
  insert into session (id, organization_id, title, description, prompt, branch_name, ${Object.keys(more).join(", ")})
  values (gen_random_uuid(), '${organization}', 'Bench', 'Bench', 'Bench', 'offstage/bench', ${Object.values(more).join(", ")})`;
const queued = newSession(largestOrganization, { status: "'queued'", queued_at: "now()" });
const running = newSession(largestOrganization, {
  status: "'running'",
  worker: "'mover'",
  lease_until: "now() + interval '1 minute'",
  attempt: "1",
});
const endClaimed = `select move_session(id, 'completed', null, null, null, false, waits_for => null)
  from session where worker = 'bench' and status = 'running'`;
const newJob = (more: Readonly<Record<string, string>>): string => `
  insert into job (id, organization_id, automation_id, priority, payload, ${Object.keys(more).join(", ")})
  values (gen_random_uuid(), '${largestOrganization}', '${automation}', 5, ${payload}, ${Object.values(more).join(", ")})`;
const endJobs = "update job set status = 'completed' where status in ('pending', 'running')";
const endArrivals = "update arrival set outcome = 'filtered', reason = 'bench' where outcome is null";

/** Sessions of an organization as rows of a subquery `x`, each of which has its row as `s`. */
const sessionsOf = (organization: string, most: number): string =>
  `(select session as s from session where organization_id = '${organization}' and exists (
      select from session_repository where session_id = session.id) limit ${most}) as x`;

function perRow(definition: string, usual: string, value: string, from: string): FunctionCase {
  const [, argument = "*"] = /\((x\.\w+)\)/u.exec(value) ?? [];
  const call = `select count(${value}) from ${from}`;
  return { definition, usual, call, without: `select count(${argument}) from ${from}` };
}

/** One row of an organization, by its id alone. */
const one = (table: string, organization: string): string =>
  `${table} where id = (select id from bench_row where organization_id = '${organization}' and relation = '${table}')`;

/** A session of each organization and of each lane of the largest, and jobs likewise, so that there is fairness to decide. */
const rivals = `
  insert into session (id, organization_id, title, description, prompt, branch_name, status, automation_id, queued_at)
  select gen_random_uuid(), organization_id, 'Rival', 'Bench', 'Bench', 'offstage/bench', 'queued', automation.id, now()
    from automation, generate_series(1, 5);
  insert into job (id, organization_id, automation_id, priority, payload, task)
  select gen_random_uuid(), organization_id, automation.id, 5, '{}', 'Rival' from automation, generate_series(1, 5);
  update session set title = 'Interrupted' where id = (
    select id from session where title = 'Rival' and organization_id = '${largestOrganization}' limit 1)`;

/** In the order in which they are measured: what one leaves is no burden to those after it. */
export const functionCases: readonly FunctionCase[] = [
  perRow("this_month", "a row, of 10,000", "this_month()", "generate_series(1, 10000)"),
  perRow("lane", "a row, of 10,000", "lane(x.s)", "(select session as s from session limit 10000) as x"),
  perRow("claimable", "a row, of 10,000", "claimable(x.s)", "(select session as s from session limit 10000) as x"),
  perRow("claimable_job", "a row, of 10,000", "claimable_job(x.j)", "(select job as j from job limit 10000) as x"),
  perRow(
    "with_remedy",
    "a failure without `mend`, of 10,000",
    "with_remedy(x.f)",
    `(select jsonb_build_object('code', 'agent_failed', 'reason', 'it ended', 'remedy', 'see the log', 'n', n) as f
      from generate_series(1, 10000) n offset 0) as x`,
  ),
  perRow(
    "is_under_way",
    "a job whose session is over, of 1,000",
    "is_under_way(x.j)",
    "(select job as j from job where status = 'completed' limit 1000) as x",
  ),
  perRow(
    "session_budget_left",
    "a session of an organization with a budget, of 200",
    "session_budget_left(x.s)",
    sessionsOf(withBudgets, 200),
  ),
  perRow(
    "month_budget_left",
    "twenty sessions of the organization run",
    "month_budget_left(x.s)",
    sessionsOf(withBudgets, 200),
  ),
  perRow(
    "read_claimed",
    "a session with one repository, of 200",
    "read_claimed(x.s)",
    sessionsOf(largestOrganization, 200),
  ),
  {
    definition: "is_listened_to",
    usual: "one of a hundred triggers lists the event",
    call: `select is_listened_to('${withTriggers}', 'session.completed', null)`,
  },
  {
    definition: "steers",
    usual: "a comment on a line of a pull request that is no session's",
    call: `select steers('${largestOrganization}', '{"isCalled": false, "numbers": [987654], "branch": null, "sha": null}')`,
  },
  {
    definition: "sessions_with_words",
    usual: "a word of one in a hundred sessions, in four days of them",
    call: "select count(*) from sessions_with_words((select questions from bench_question), 100)",
  },
  {
    definition: "fairest_organization",
    usual: "twenty organizations have something queued",
    call: "select fairest_organization(20, '{}')",
  },
  {
    definition: "fairest_session",
    usual: "ten lanes have something queued, twenty sessions run",
    call: `select * from fairest_session('${largestOrganization}', null)`,
  },
  {
    definition: "place_is_kept",
    usual: "one session of the organization was interrupted",
    before: `update session set interrupted_at = now(), retry_at = now() where title = 'Interrupted'`,
    call: `select place_is_kept((select id from session where title = 'Rival' and organization_id = '${largestOrganization}'
      limit 1), 'bench', '12 seconds')`,
    after: "update session set interrupted_at = null, retry_at = null where title = 'Interrupted'",
  },
  {
    definition: "claim_session",
    usual: "one lane of one organization has fifty queued, nobody has a webhook",
    setup: `delete from session where title in ('Rival', 'Interrupted');
      ${Array.from({ length: 50 }, () => queued).join(";")}`,
    before: queued,
    call: "select * from claim_session('bench', '12 seconds', 100, null, '{}')",
    after: endClaimed,
  },
  {
    definition: "move_session",
    usual: "a session that ran is completed, nobody has a webhook",
    before: running,
    call: `select move_session(id, 'completed', null, null, 'Done', false, waits_for => null)
      from session where worker = 'mover' and status = 'running'`,
  },
  {
    definition: "move_session.without_waits_for",
    usual: "a session that ran is completed, nobody has a webhook",
    before: running,
    call: `select move_session(id, 'completed', null, null, 'Done', false)
      from session where worker = 'mover' and status = 'running'`,
  },
  {
    definition: "fairest_job",
    usual: "thirty automations of twenty organizations have five jobs each",
    call: "select fairest_job('{}')",
  },
  {
    definition: "fairest_job_without_fan_out",
    usual: "thirty automations of twenty organizations have five jobs each",
    call: "select fairest_job_without_fan_out()",
  },
  {
    definition: "claim_job",
    usual: "one automation has fifty pending, nobody has a webhook",
    setup: `${endJobs}; ${Array.from({ length: 50 }, () => newJob({ status: "'pending'" })).join(";")}`,
    before: newJob({ status: "'pending'" }),
    call: "select * from claim_job('bench', '12 seconds', true, '{}')",
    after: "update job set status = 'completed' where status = 'running'",
  },
  {
    definition: "claim_job.without_busy",
    usual: "one automation has fifty pending, nobody has a webhook",
    setup: `${endJobs}; ${Array.from({ length: 50 }, () => newJob({ status: "'pending'" })).join(";")}`,
    before: newJob({ status: "'pending'" }),
    call: "select * from claim_job('bench', '12 seconds', true)",
    after: "update job set status = 'completed' where status = 'running'",
  },
  {
    definition: "claim_job.without_fan_out",
    usual: "one automation has fifty pending, nobody has a webhook",
    setup: `${endJobs}; ${Array.from({ length: 50 }, () => newJob({ status: "'pending'" })).join(";")}`,
    before: newJob({ status: "'pending'" }),
    call: "select * from claim_job('bench', '12 seconds')",
    after: "update job set status = 'completed' where status = 'running'",
  },
  {
    definition: "count_run",
    usual: "a completed run, and none failed before",
    call: `select count_run('${automation}', 'completed', gen_random_uuid(), null, null)`,
  },
  {
    definition: "move_job",
    usual: "a job that ran is completed, nobody has a webhook",
    before: newJob({ status: "'running'", worker: "'moving'", attempt: "1" }),
    call: `select move_job(id, 'running', 'completed', of_attempt => 1)
      from job where worker = 'moving' and status = 'running'`,
  },
  {
    definition: "fail_job",
    usual: "the first run that fails, nobody has a webhook",
    before: newJob({ status: "'running'", worker: "'failing'", attempt: "1" }),
    call: "select fail_job(id, 1, 'it broke', false) from job where worker = 'failing' and status = 'running'",
    after: `update automation set failed_in_a_row = 0, paused = false where id = '${automation}'`,
  },
  {
    definition: "note_run_end",
    usual: "a completed run, and none failed before",
    before: `${newJob({ status: "'running'", worker: "'ended'" })};
      ${newSession(largestOrganization, {
        status: "'completed'",
        automation_id: `'${automation}'`,
        job_id: "(select id from job where worker = 'ended' and status = 'running')",
      })}`,
    call: `select note_run_end(session) from session where job_id = (
      select id from job where worker = 'ended' and status = 'running')`,
    after: "update job set status = 'completed' where worker = 'ended' and status = 'running'",
  },
  {
    definition: "note_received",
    usual: "a delivery with two keys that is new",
    call: `select note_received('${withTriggers}', '${connection}',
      jsonb_build_array('delivery:' || gen_random_uuid(), 'content:' || gen_random_uuid()), gen_random_uuid())`,
  },
  {
    definition: "receive_event",
    usual: "an event of 7 kB that one of a hundred triggers lists",
    call: `select * from receive_event(jsonb_build_object('id', gen_random_uuid(), 'organizationId', '${withTriggers}',
      'connectionId', '${connection}', 'scope', '${connection}', 'name', 'push', 'payload', ${payload}::jsonb,
      'keys', jsonb_build_array('delivery:' || gen_random_uuid())))`,
    after: endArrivals,
  },
  {
    definition: "fire_trigger",
    usual: "an event of 7 kB that is new, and a trigger without a policy",
    call: `select * from fire_trigger(jsonb_build_object('id', gen_random_uuid(), 'organizationId', '${withTriggers}',
      'automationId', '${automationOf(withTriggers)}', 'triggerId', '${trigger}', 'priority', 5, 'payload', ${payload}::jsonb,
      'keys', jsonb_build_array('delivery:' || gen_random_uuid())))`,
    after: endJobs,
  },
  {
    definition: "fire_triggers",
    usual: "each of ten deliveries of 7 kB that are new, to a trigger without a policy",
    call: `select * from fire_triggers((select jsonb_agg(jsonb_build_object('id', gen_random_uuid(), 'organizationId', '${withTriggers}',
      'automationId', '${automationOf(withTriggers)}', 'triggerId', '${trigger}', 'priority', 5, 'payload', ${payload}::jsonb,
      'keys', jsonb_build_array('delivery:' || gen_random_uuid()))) from generate_series(1, 10)))`,
    without: "select count(*) from generate_series(1, 10)",
    after: endJobs,
  },
  {
    definition: "receiving_version",
    usual: "a trigger that takes deliveries",
    setup: `insert into trigger (id, organization_id, automation_id, type, position)
      values ('${hookTrigger}', '${withTriggers}', '${automationOf(withTriggers)}', 'webhook', 101)`,
    call: `select receiving_version('${hookTrigger}')`,
  },
  {
    definition: "supersede_runs",
    usual: "one older run of the key is pending",
    before: newJob({ concurrency_key: "'bench'", holds_key: "true" }),
    call: `select supersede_runs('${automation}', 'bench', gen_random_uuid(), false)`,
    after: "delete from job where concurrency_key = 'bench'",
  },
  {
    definition: "release_held_jobs",
    usual: "one job has waited for quiet",
    before: newJob({ held_until: "now() - interval '1 second'", held_since: "now() - interval '1 minute'" }),
    call: "select release_held_jobs()",
    after: endJobs,
  },
  {
    definition: "tell_triggers",
    usual: "one of a hundred triggers lists the event",
    call: `select tell_triggers('session.completed', session, '{}') from ${one("session", withTriggers)}`,
    after: endArrivals,
  },
  {
    definition: "tell_triggers_of_pull_request",
    usual: "one of a hundred triggers lists the event",
    call: `select tell_triggers_of_pull_request(pull_request, 'pullRequest.openedByOffstage') from ${one("pull_request", withTriggers)}`,
    after: endArrivals,
  },
  {
    definition: "enqueue_notice",
    usual: "nobody of the organization wants to be told of anything",
    call: `select enqueue_notice('${largestOrganization}', 'session.completed', '{"id": "1", "status": "completed"}')`,
  },
  {
    definition: "enqueue_webhooks",
    usual: "the organization has one webhook",
    call: `select enqueue_webhooks('${withWebhook}', 'session.completed', '{"id": "1", "status": "completed"}')`,
  },
  {
    definition: "enqueue_session_webhooks",
    usual: "the organization has one webhook",
    call: `select enqueue_session_webhooks(session) from ${one("session", withWebhook)}`,
  },
  {
    definition: "enqueue_job_webhooks",
    usual: "the organization has one webhook",
    call: `select enqueue_job_webhooks(job) from ${one("job", withWebhook)}`,
  },
  {
    definition: "enqueue_pull_request_webhooks",
    usual: "the organization has one webhook, and no trigger",
    call: `select enqueue_pull_request_webhooks(pull_request, 'opened') from ${one("pull_request", withWebhook)}`,
  },
  {
    definition: "hold_budget",
    usual: "the session and the month have budgets, twenty sessions run",
    call: `select * from hold_budget((select id from session where worker = 'busy' and status = 'running'
      and organization_id = '${withBudgets}' limit 1), 0.01, 0.01)`,
    after: "delete from model_hold where held_usd = 0.01",
  },
  {
    definition: "settle_budget",
    usual: "a request that held something costs less",
    before: `insert into model_hold (id, session_id, organization_id, held_usd)
      select '${hold}', id, organization_id, 0.02 from ${one("session", withBudgets)}`,
    call: `select settle_budget(id, organization_id, '${hold}', 0.01) from ${one("session", withBudgets)}`,
  },
  {
    definition: "spend_budget",
    usual: "the month has a row already",
    call: `select spend_budget(id, organization_id, 0.01) from ${one("session", withBudgets)}`,
  },
  {
    definition: "mark_insight",
    usual: "a session ends",
    before: running,
    call: `update session set status = 'completed', finished_at = now() where worker = 'mover' and status = 'running'`,
    trigger: "mark_insight_of_end",
  },
  {
    definition: "forget_head_sha",
    usual: "a pull request is saved with its number",
    call: `update pull_request set number = number where id = (select id from bench_row where relation = 'pull_request' limit 1)`,
    trigger: "forget_head_sha",
  },
];

/**
 * Adds to a filled database what the cases need: triggers, jobs and entries of the ledger in proportion to the sessions, budgets,
 * a webhook, pull requests, and twenty sessions that run.
 * @param rows how many sessions it was filled with
 */
export async function prepareCases(client: pg.Client, rows: number): Promise<void> {
  await client.query(`
    set max_parallel_workers_per_gather = 0;
    update session set status = 'completed', finished_at = now() where status in ('queued', 'running');
    update session set status = 'running', worker = 'busy', lease_until = now() + interval '1 day', attempt = 1, finished_at = null
      where id in (select id from session where organization_id = '${largestOrganization}' order by created_at desc limit 20)
        or id in (select id from session where organization_id = '${withBudgets}' order by created_at desc limit 20);
    insert into worker_node (id, agents, concurrency, seen_at) values ('bench', '[]', 20, now() + interval '1 day');
    insert into automation (id, organization_id, name, macro, instructions, repository_ids, priority, paused)
    select overlay(id::text placing '-a000-' from 19 for 6)::uuid, id, 'automation', 'automation', 'Fix it', '{}', 5, false
      from organization where id <> '${largestOrganization}';
    insert into trigger (id, organization_id, automation_id, type, position, settings)
    select ('00000000-0000-4000-b000-' || lpad(n::text, 12, '0'))::uuid, '${withTriggers}', '${automationOf(withTriggers)}', 'forge', n,
      jsonb_build_object('repositories', '[]'::jsonb, 'events', case when n = 100
        then '["session.completed", "pullRequest.openedByOffstage", "push"]'::jsonb else '["issue.opened"]' end)
      from generate_series(1, 100) n;
    insert into webhook (id, organization_id, url, events, sealed, master_key)
      values (gen_random_uuid(), '${withWebhook}', 'https://hooks.example', '{}', '', '');
    update organization set session_budget_usd = 100, monthly_budget_usd = 1000000 where id = '${withBudgets}';
    insert into model_spend (organization_id, month, spent_usd) values ('${withBudgets}', this_month(), 10);
    insert into model_hold (session_id, organization_id, held_usd)
      select id, organization_id, 0.5 from session where organization_id = '${withBudgets}' and status = 'running' limit 5;
    insert into job (id, organization_id, automation_id, status, priority, payload, session_id, created_at)
    select gen_random_uuid(), automation.organization_id, automation.id, 'completed', 5, '{"issue": 7}',
        session.id, session.created_at
      from session join automation on automation.organization_id = session.organization_id
        and (automation.organization_id <> '${largestOrganization}' or automation.id = '${automation}');
    insert into arrival (id, organization_id, outcome, reason, name, payload, created_at)
    select gen_random_uuid(), '${withTriggers}', 'filtered', 'its condition does not hold', 'issue.opened', '{"issue": 7}',
      now() - n * interval '1 minute' from generate_series(1, ${rows}) n;
    insert into received_key (organization_id, scope, key, ledger_id)
    select '${withTriggers}', '${connection}', 'delivery:' || n, gen_random_uuid() from generate_series(1, ${rows}) n;
    insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url)
    select gen_random_uuid(), session.organization_id, session.id, part.repository_id, session.branch_name, 'main', 7, 'https://forge.example'
      from session join session_repository part on part.session_id = session.id
      where session.organization_id in ('${withWebhook}', '${withTriggers}')
      -- The filling has given some theirs.
      on conflict do nothing;
    create temporary table bench_question as
    select array[quote_literal(lexeme)::tsquery] as questions from (
      select unnest(tsvector_to_array(session_lexemes(organization_id, created_at, title, description))) as lexeme from session
      where description like '% medium%' order by created_at desc limit 100) as every where lexeme like '%/medium' limit 1;
    create temporary table bench_row as
    select distinct on (relation, organization_id) * from (
      select 'session' as relation, organization_id, id from session union all
      select 'job', organization_id, id from job union all
      select 'pull_request', organization_id, id from pull_request) as every;
    ${rivals}`);
  await client.query("vacuum analyze");
}
