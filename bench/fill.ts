import pg from "pg";

/**
 * Fills a migrated, empty database with sessions as years of work would leave them: several organizations of which one
 * has most, nearly all of them over, words of very different frequency, and a queue that stays as short as it is.
 */

/** What the filled sessions are found by. Each word stands in this share of them. */
export const words = { common: 0.3, medium: 0.01, seldom: 0.001 } as const;
/** Stands in five sessions of the largest organization, however many there are. */
export const rareWord = "heisenbug";
/** Of the largest organization: has sixty of a hundred sessions. */
export const largestOrganization = "00000000-0000-4000-8000-000000000000";
/** Has a thousand sessions, however many there are. */
export const smallOrganization = "00000000-0000-4000-8000-000000000020";
/** Has five sessions, however many there are. */
export const rareAutomation = "00000000-0000-4000-9000-000000000009";
/** A label of five sessions of the largest organization, of one in a hundred, and of half of them. */
export const labels = { rare: "rare", some: "some", half: "half" } as const;
/** Users of the largest organization: the first asked for half of its sessions, the second for five. */
export const people = ["00000000-0000-4000-a000-000000000000", "00000000-0000-4000-a000-000000000001"] as const;
/** Of the largest organization: has one in a hundred of its sessions, and five. */
export const repositories = {
  usual: `md5('repository 0 0')::uuid`,
  rare: "00000000-0000-4000-b000-000000000000",
} as const;
/** Sessions that are not over, however many there are. */
const unfinished = 200;
const organizations = 20;

/** Id of the session with this number, from 1. Every tenth has five events. */
export const sessionIdSql = (number: string): string => `md5('session ' || ${number})::uuid`;

const filled = ["session", "event", "message", "session_repository", "session_label", "pull_request"];
const chunk = 500_000;

interface Definition {
  readonly table: string;
  readonly name: string;
  readonly definition: string;
}

/** @param say called for each step that takes long */
export async function fill(url: string, rows: number, say: (text: string) => void): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(
      "set synchronous_commit = off; set session_replication_role = replica; set maintenance_work_mem = '1GB'",
    );
    const restore = await dropIndexes(client);
    await addSurroundings(client);
    for (let first = 1; first <= rows; first += chunk) {
      const last = Math.min(rows, first + chunk - 1);
      await addSessions(client, first, last, rows);
      say(`${last} of ${rows} sessions`);
    }
    for (const { table, name, definition } of restore) {
      await client.query(definition);
      say(`${table}: ${name}`);
    }
    await client.query("vacuum analyze");
    await client.query("checkpoint");
  } finally {
    await client.end();
  }
}

/** Keys and indexes of the filled tables are dropped while rows come in. @returns statements that make them again */
async function dropIndexes(client: pg.Client): Promise<Definition[]> {
  const constraints = await client.query<Definition>(
    `select conrelid::regclass::text as table, conname as name,
       format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as definition
     from pg_constraint where (conrelid = any($1::regclass[]) and contype in ('p', 'u', 'f'))
       or (confrelid = any($1::regclass[]) and contype = 'f')
     order by array_position(array['p', 'u', 'f'], contype::text)`,
    [filled],
  );
  for (const { table, name } of constraints.rows.toReversed()) {
    await client.query(`alter table ${table} drop constraint ${pg.escapeIdentifier(name)}`);
  }
  const indexes = await client.query<Definition>(
    `select tablename as table, indexname as name, indexdef as definition from pg_indexes
     where schemaname = 'public' and tablename = any($1)`,
    [filled],
  );
  for (const { name } of indexes.rows) await client.query(`drop index ${pg.escapeIdentifier(name)}`);
  // Foreign keys last: they are checked by the others.
  const isForeign = ({ definition }: Definition): boolean => / foreign key /iu.test(definition);
  const keys = constraints.rows;
  return [...keys.filter((key) => !isForeign(key)), ...indexes.rows, ...keys.filter(isForeign)];
}

async function addSurroundings(client: pg.Client): Promise<void> {
  await client.query(`
    insert into organization (id, name)
    select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'organization ' || n
    from generate_series(0, ${organizations}) n;
    insert into automation (id, organization_id, name, macro, instructions, repository_ids, priority, paused)
    select ('00000000-0000-4000-9000-' || lpad(n::text, 12, '0'))::uuid, '${largestOrganization}',
      'automation ' || n, 'automation-' || n, 'Fix it', '{}', 5, false from generate_series(0, 9) n;
    insert into repository (id, organization_id, name, url, address_key)
    select md5('repository ' || o || ' ' || n)::uuid,
      ('00000000-0000-4000-8000-' || lpad(o::text, 12, '0'))::uuid, 'acme/repository-' || n,
      'https://forge.example/acme/repository-' || o || '-' || n, 'forge.example/acme/repository-' || o || '-' || n
    from generate_series(0, ${organizations}) o, generate_series(0, 49) n;
    insert into repository (id, organization_id, name, url, address_key)
    values ('${repositories.rare}', '${largestOrganization}', 'acme/rare', 'https://forge.example/acme/rare', 'forge.example/acme/rare');
    insert into user_account (id, organization_id, issuer, subject, name, role)
    select ('00000000-0000-4000-a000-' || lpad(n::text, 12, '0'))::uuid, '${largestOrganization}', 'https://id.example', n::text, 'user ' || n, 'member'
    from generate_series(0, 199) n;
    create temporary table sentence as
    select n as place, string_agg(translate(left(md5('word ' || floor(5000 * random() ^ 3)), 7), '0123456789', 'ghijklmnop'), ' ') as text
    from generate_series(0, 19999) n, generate_series(1, 10) word group by n;
    create unique index on sentence (place);
    analyze sentence`);
}

async function addSessions(client: pg.Client, first: number, last: number, rows: number): Promise<void> {
  const organizationOf = (hash: string): string =>
    `('00000000-0000-4000-8000-' || lpad((case when ${hash} % 100 < 60 then 0 else 1 + ${hash} % ${organizations - 1} end)::text, 12, '0'))::uuid`;
  const hasRare = `n % greatest(${rows} / 5, 1) = 1`;
  const ofSmall = `n % greatest(${rows} / 1000, 1) = 2`;
  await client.query(`
    insert into session (id, organization_id, title, description, prompt, status, branch_name, automation_id, summary, requested_by, archived_at,
      last_event, queued_at, started_at, finished_at, created_at, updated_at)
    select ${sessionIdSql("n")}, case when ${hasRare} then '${largestOrganization}'::uuid
        when ${ofSmall} then '${smallOrganization}'::uuid else ${organizationOf("h")} end,
      a.text,
      b.text || ' ' || c.text || ' number' || n
        || case when h2 % 1000 < ${words.common * 1_000} then ' common' else '' end
        || case when h3 % 1000 < ${words.medium * 1_000} then ' medium' else '' end
        || case when h4 % 10000 < ${words.seldom * 10_000} then ' seldom' else '' end
        || case when ${hasRare} then ' ${rareWord}' else '' end,
      b.text,
      case when n > ${rows - unfinished} then (array['queued', 'queued', 'queued', 'running'])[1 + n % 4]
        else (array['completed', 'completed', 'completed', 'completed', 'completed', 'completed', 'completed', 'failed', 'failed', 'cancelled'])[1 + h % 10] end,
      'offstage/session-' || n,
      case when ${hasRare} then '${rareAutomation}'::uuid
        when h % 100 < 15 then ('00000000-0000-4000-9000-' || lpad((h % 9)::text, 12, '0'))::uuid end,
      c.text, case when ${hasRare} then '${people[1]}'::uuid when h2 % 2 = 0 then '${people[0]}'::uuid
        else ('00000000-0000-4000-a000-' || lpad((2 + h3 % 198)::text, 12, '0'))::uuid end,
      case when n < ${rows} * 0.7 and h4 % 10 < 9 then at end,
      5, at, at, case when n <= ${rows - unfinished} then at + interval '5 minutes' end, at, at
    from (select n, abs(hashint8(n)) as h, abs(hashint8(n + 1000000007)) as h2, abs(hashint8(n + 2000000011)) as h3,
        abs(hashint8(n + 3000000019)) as h4,
        now() - interval '2 years' + n * (interval '2 years' / ${rows}) as at
      from generate_series(${first}::bigint, ${last}::bigint) n) as one
    join sentence a on a.place = h % 20000 join sentence b on b.place = h2 % 20000 join sentence c on c.place = h3 % 20000
    order by one.n`);
  await client.query(`
    insert into session_repository (session_id, repository_id, position, directory, session_created_at)
    select session.id, case when ${hasRare} then '${repositories.rare}'::uuid
        else md5('repository ' || right(organization_id::text, 2)::integer || ' ' || n / 2 % 50)::uuid end, 1, 'repository', created_at
    from generate_series(${first}::bigint, ${last}::bigint) n join session on session.id = ${sessionIdSql("n")}
    where n % 2 = 0 or ${hasRare};
    insert into session_label (session_id, label, organization_id, session_created_at)
    select session.id, label, organization_id, created_at
    from generate_series(${first}::bigint, ${last}::bigint) n join session on session.id = ${sessionIdSql("n")},
      unnest(array[case when n % 2 = 0 then '${labels.half}' end, case when n % 100 = 1 then '${labels.some}' end,
        case when ${hasRare} then '${labels.rare}' end]) as label
    where label is not null;
    insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url, state, mergeable, created_at)
    select md5('pull request ' || n)::uuid, session.organization_id, session.id, repository_id, branch_name, 'main', n % 100000,
      'https://forge.example/pull/' || n, case when n > ${rows} - 2000 then 'open' else 'merged' end,
      case when n % 10 = 0 then false else true end, created_at
    from generate_series(${first}::bigint, ${last}::bigint) n join session on session.id = ${sessionIdSql("n")}
    join session_repository part on part.session_id = session.id where n % 4 = 0 and status = 'completed';
    insert into message (id, session_id, position, text, status)
    select md5('message ' || n)::uuid, ${sessionIdSql("n")}, 1, 'Fix the test', 'done'
    from generate_series(${first - 1 + 10}::bigint, ${last}::bigint, 10) n;
    insert into event (session_id, seq, type, data)
    select ${sessionIdSql("n")}, seq, 'notice', '{"level": "warning", "text": "Offstage ignored unknown fields of the request."}'
    from generate_series(${first - 1 + 10}::bigint, ${last}::bigint, 10) n, generate_series(1, 5) seq order by n, seq`);
}
