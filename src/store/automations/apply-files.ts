import { randomUUID } from "node:crypto";
import type { Database, Queryable } from "../../database/database.ts";
import type { TriggerInput } from "../../domain/automations/trigger.ts";
import { storable } from "../../domain/fields/text.ts";
import { sealing } from "../secrets/rotation.ts";
import type { Vault } from "../secrets/vault.ts";
import { createAutomationIn, updateAutomationIn, type AutomationInput, type TriggerChanges } from "./automations.ts";
import { deleteFiles, lockAutomations, type ClaimedSync, type KnownFile } from "./file-sync.ts";
import type { TriggerRecord } from "./triggers.ts";

/** A file as it is now. */
export interface ReadFile {
  readonly path: string;
  readonly blob: string;
  readonly url: string | null;
  /** Its content; null if it is unchanged since the last read; or the reason why it does not count. */
  readonly content: FileAutomation | { readonly problem: string } | null;
}

/** An automation as a file has it. */
export interface FileAutomation extends Omit<AutomationInput, "repositoryIds"> {
  readonly triggers: readonly TriggerInput[];
}

/** The files read of a branch. */
export interface ReadBranch {
  readonly branch: string;
  readonly commit: string;
  readonly files: readonly ReadFile[];
}

/** A file that does not count, and why. */
export interface FileProblem {
  readonly path: string;
  readonly problem: string;
}

/**
 * Brings a repository's automations to what its files say. A file that does not count leaves what its last good version made; one
 * that is gone takes along its automation. An automation keeps its id by its macro, whatever its file is called, else by its file.
 * @param atEnd called at the end of the transaction, with the files that do not count
 * @returns the problems; null if another worker has claimed the repository since, or it was switched off: nothing was changed
 */
export function applyFiles(
  database: Database,
  vault: Vault,
  claim: ClaimedSync,
  read: ReadBranch,
  atEnd: (transaction: Queryable, problems: readonly FileProblem[]) => Promise<void>,
): Promise<readonly FileProblem[] | null> {
  return sealing(database, async (transaction) => {
    if (!(await holds(transaction, claim))) return null;
    await lockAutomations(transaction, claim.repositoryId);
    const known = await knownFiles(transaction, claim.repositoryId);
    const taken = await takenMacros(transaction, claim);
    const { planned, problems } = plan(known, taken, read.files);
    const kept = read.files.flatMap(
      ({ path }) => known.find((file) => file.path === path && !planned.has(path))?.automationId ?? [],
    );
    const going = [...planned.values()].flatMap(({ automationId }) => automationId ?? []);
    await deleteFiles(transaction, claim, [...kept, ...going]);
    for (const file of read.files) {
      const to = planned.get(file.path);
      const automationId = to === undefined ? undefined : await save(transaction, vault, claim, to);
      const problem = problems.find(({ path }) => path === file.path)?.problem ?? null;
      const former = known.find(({ path }) => path === file.path);
      await saveFile(transaction, claim, file, { automationId: automationId ?? former?.automationId ?? null, problem });
    }
    await transaction.query(
      `update automation_sync set branch = $3, commit = $4, synced_at = now(), problem = null, lease_until = null, updated_at = now()
       where repository_id = $1 and attempt = $2`,
      [claim.repositoryId, claim.attempt, read.branch, read.commit],
    );
    await atEnd(transaction, problems);
    return problems;
  });
}

async function holds(transaction: Queryable, { repositoryId, attempt }: ClaimedSync): Promise<boolean> {
  const { rows } = await transaction.query<{ attempt: number; enabled: boolean }>(
    "select attempt, enabled from automation_sync where repository_id = $1 for update",
    [repositoryId],
  );
  return rows[0]?.enabled === true && rows[0].attempt === attempt;
}

async function knownFiles(transaction: Queryable, repositoryId: string): Promise<KnownFile[]> {
  const { rows } = await transaction.query<KnownFile>(
    `select path, blob, automation.id as "automationId", macro, problem from automation_file
     left join automation on automation.id = automation_id and automation.deleted_at is null
     where repository_id = $1`,
    [repositoryId],
  );
  return rows;
}

/** Macros of the organization's automations that are not this repository's files'. */
async function takenMacros(
  transaction: Queryable,
  { organizationId, repositoryId }: ClaimedSync,
): Promise<Set<string>> {
  const { rows } = await transaction.query<{ macro: string }>(
    `select macro from automation where organization_id = $1 and deleted_at is null
       and not exists (select from automation_file where automation_id = automation.id and repository_id = $2)`,
    [organizationId, repositoryId],
  );
  return new Set(rows.map(({ macro }) => macro));
}

interface Planned {
  readonly content: FileAutomation;
  /** Of the automation that it changes; null: a new one. */
  readonly automationId: string | null;
}

/** Which file makes or changes which automation, and which do not count. */
function plan(
  known: readonly KnownFile[],
  taken: ReadonlySet<string>,
  files: readonly ReadFile[],
): { readonly planned: ReadonlyMap<string, Planned>; readonly problems: readonly FileProblem[] } {
  const problems: FileProblem[] = [];
  const good: { path: string; content: FileAutomation }[] = [];
  const owners = new Map<string, string>();
  // Unchanged files keep their macros first.
  for (const { path, content } of files) {
    const before = known.find((file) => file.path === path);
    if (content === null && before?.macro != null) owners.set(before.macro, path);
  }
  for (const { path, content } of files) {
    if (content === null) continue;
    if ("problem" in content) {
      problems.push({ path, problem: content.problem });
      continue;
    }
    const { macro } = content;
    const owner = owners.get(macro);
    if (owner !== undefined) problems.push({ path, problem: `macro: ${macro} is that of ${owner} too` });
    else if (taken.has(macro)) problems.push({ path, problem: `macro: ${macro} is taken by another automation` });
    else {
      owners.set(macro, path);
      good.push({ path, content });
    }
  }
  const broken = new Set(problems.map(({ path }) => path));
  // The automation of a file that does not count any more stays that file's.
  const used = new Set(
    known.flatMap(({ path, automationId }) => {
      const file = files.find((each) => each.path === path);
      return automationId !== null && file !== undefined && (broken.has(path) || file.content === null)
        ? [automationId]
        : [];
    }),
  );
  const planned = new Map<string, Planned>();
  const free = (automationId: string | null): automationId is string =>
    automationId !== null && !used.has(automationId);
  for (const { path, content } of good) {
    const same = known.find(({ macro, automationId }) => macro === content.macro && free(automationId));
    if (same?.automationId == null) continue;
    used.add(same.automationId);
    planned.set(path, { content, automationId: same.automationId });
  }
  for (const { path, content } of good) {
    if (planned.has(path)) continue;
    const same = known.find((file) => file.path === path && free(file.automationId));
    if (same?.automationId != null) used.add(same.automationId);
    const isHeld = known.some(
      ({ macro, automationId }) => macro === content.macro && automationId !== null && used.has(automationId),
    );
    if (isHeld) problems.push({ path, problem: `macro: ${content.macro} is that of another file's last good version` });
    else planned.set(path, { content, automationId: same?.automationId ?? null });
  }
  return { planned, problems };
}

/** Makes or changes an automation. @returns its id */
async function save(
  transaction: Queryable,
  vault: Vault,
  { organizationId, repositoryId }: ClaimedSync,
  { content, automationId }: Planned,
): Promise<string> {
  const { triggers: list, paused, ...fields } = content;
  const input = { ...fields, repositoryIds: [repositoryId] };
  if (automationId === null) {
    const id = randomUUID();
    const triggers: TriggerChanges = { vault, list, now: Date.now() };
    await createAutomationIn(transaction, organizationId, { ...input, id, paused }, triggers);
    return id;
  }
  const triggers = { vault, list: await withIds(transaction, automationId, list), now: Date.now() };
  // A file can pause its automation; only a person resumes one.
  await updateAutomationIn(
    transaction,
    organizationId,
    automationId,
    { ...input, ...(paused && { paused }) },
    triggers,
  );
  return automationId;
}

/** A trigger that a file had. */
interface FormerTrigger {
  readonly id: string;
  readonly type: TriggerRecord["type"];
  /** What the file said of it, by the fields' names. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A file's triggers with the ids of those that they are still: so addresses and secrets stay. */
async function withIds(
  transaction: Queryable,
  automationId: string,
  list: readonly TriggerInput[],
): Promise<TriggerInput[]> {
  const { rows } = await transaction.query<FormerTrigger>(
    `select id, type, settings - 'hasReplyToken' || jsonb_build_object('enabled', enabled, 'condition', condition, 'concurrency', concurrency,
       'debounceSeconds', debounce_seconds, 'maxPerHour', max_per_hour) as fields
     from trigger where automation_id = $1 and deleted_at is null and type <> 'api' order by position`,
    [automationId],
  );
  const ids = idsOf(rows, list);
  return list.map((trigger) => {
    const id = ids.get(trigger);
    return id === undefined ? trigger : { ...trigger, id };
  });
}

/**
 * Which triggers are which former ones: first those that are as they were, then those that are alike in most fields, of
 * several the first. Their order alone would give a trigger the address and the secret of one before it that was taken
 * out of the file.
 */
function idsOf(former: readonly FormerTrigger[], list: readonly TriggerInput[]): ReadonlyMap<TriggerInput, string> {
  const ids = new Map<TriggerInput, string>();
  const free = new Set<Described>(
    former.map(({ id, type, fields }) => ({ id, kind: kindOf(type, fields), said: saidIn(fields) })),
  );
  const now = list
    .filter(({ type }) => type !== "api")
    .map((trigger) => ({ trigger, kind: kindOf(trigger.type, trigger), said: new Set(saidIn(trigger)) }));
  for (const isWhole of [true, false]) {
    for (const { trigger, kind, said } of now) {
      if (ids.has(trigger)) continue;
      const best = mostAlike(free, { kind, said, isWhole });
      if (best === null) continue;
      ids.set(trigger, best.id);
      free.delete(best);
    }
  }
  return ids;
}

/** A trigger as it is compared: its kind, and what each of its fields says. */
interface Described {
  readonly id: string;
  readonly kind: string;
  readonly said: readonly string[];
}

/**
 * The former trigger of a kind that is alike in most fields, of several the first; null if there is none.
 * @param wanted.isWhole whether all that was said of it must still be said
 */
function mostAlike(
  former: Iterable<Described>,
  { kind, said, isWhole }: { readonly kind: string; readonly said: ReadonlySet<string>; readonly isWhole: boolean },
): Described | null {
  let best = null;
  let most = -1;
  for (const before of former) {
    if (before.kind !== kind) continue;
    const alike = before.said.filter((each) => said.has(each)).length;
    if (alike > most && (!isWhole || alike === before.said.length)) [best, most] = [before, alike];
  }
  return best;
}

/** Triggers of one kind can have one another's address and secret. */
function kindOf(type: string, fields: object): string {
  return `${type} ${(fields as { readonly source?: string }).source ?? ""}`;
}

/** What each field says, as JSON in which the order of names does not count: a file may have a thousand triggers. */
function saidIn(fields: object): string[] {
  const inOrder = (_name: string, value: unknown): unknown =>
    typeof value !== "object" || value === null || Array.isArray(value)
      ? value
      : Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)));
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name} ${JSON.stringify(value, inOrder)}`);
}

async function saveFile(
  transaction: Queryable,
  { repositoryId, organizationId }: ClaimedSync,
  { path, blob, url }: ReadFile,
  { automationId, problem }: { readonly automationId: string | null; readonly problem: string | null },
): Promise<void> {
  await transaction.query(
    `insert into automation_file (repository_id, path, organization_id, automation_id, blob, url, problem)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    // A file that does not count is read again: another automation may release the macro.
    [
      repositoryId,
      path,
      organizationId,
      automationId,
      problem === null ? blob : null,
      url,
      problem === null ? null : storable(problem),
    ],
  );
}
