import type { Database } from "../../database/database.ts";
import { newId } from "../../domain/fields/new-id.ts";
import { storableJson } from "../../domain/fields/text.ts";
import type { FileAnswer, FileQuestion } from "../../domain/sessions/workspace-file.ts";
import type { SessionStatus } from "../../domain/sessions/status.ts";

// What API nodes ask workers of sessions' files: an API node may run on another machine, and has neither mirrors nor folders.

/** Notified with a worker's id when it was asked for files. */
export const fileRequestChannel = "offstage_file_request";
/** Notified with a request's id when it was answered. */
export const fileAnswerChannel = "offstage_file_answer";

/** Nobody waits for an answer any longer after this. */
const waitedFor = "20 seconds";
const forgottenAfter = "5 minutes";

/**
 * Asks a worker: the one whose disk has the session's folders, if it is there, else the one that was heard of last.
 * @param countedFor how long a worker without a heartbeat counts, as an interval
 * @returns the request's id, or why nobody was asked: the session never had folders, or no worker is there
 */
export async function askForFiles(
  database: Database,
  sessionId: string,
  question: FileQuestion,
  countedFor: string,
): Promise<{ readonly id: string } | "no folders" | "no worker"> {
  const { rows } = await database.pool.query<{ id: string; worker: string }>(
    `insert into file_request (id, session_id, worker, question)
     select $1, session.id, node.id, $3 from session, worker_node as node
     where session.id = $2 and session.workspace_worker is not null and node.seen_at > now() - $4::interval
     order by (node.id = session.workspace_worker) desc, node.seen_at desc, node.id limit 1
     returning id, worker`,
    [newId(), sessionId, JSON.stringify(question), countedFor],
  );
  const [row] = rows;
  if (row !== undefined) {
    database.notify(fileRequestChannel, row.worker);
    return { id: row.id };
  }
  const begun = await database.pool.query("select 1 from session where id = $1 and workspace_worker is not null", [
    sessionId,
  ]);
  return begun.rowCount === 1 ? "no worker" : "no folders";
}

/** What a worker was asked. */
export interface FileRequest {
  readonly id: string;
  readonly organizationId: string;
  readonly sessionId: string;
  readonly question: FileQuestion;
}

/** Takes what a worker was asked and has not taken yet, oldest first, without that of busy organizations. */
export async function takeFileRequests(
  database: Database,
  worker: string,
  { most, busy }: { readonly most: number; readonly busy: readonly string[] },
): Promise<FileRequest[]> {
  const { rows } = await database.pool.query<FileRequest>(
    `with next as (
       select file_request.id, organization_id from file_request join session on session.id = session_id
       where file_request.worker = $1 and file_request.claimed_at is null and asked_at > now() - interval '${waitedFor}'
         and organization_id <> all($3::uuid[])
       order by asked_at limit $2 for update of file_request skip locked)
     update file_request set claimed_at = now() from next where file_request.id = next.id
     returning file_request.id, organization_id as "organizationId", session_id as "sessionId", question`,
    [worker, most, busy],
  );
  return rows;
}

/** Answers a request, if somebody still waits for it. */
export async function answerFileRequest(database: Database, id: string, answer: FileAnswer): Promise<void> {
  const { rowCount } = await database.pool.query("update file_request set answer = $2 where id = $1", [
    id,
    // Names are of any bytes.
    storableJson(answer),
  ]);
  if (rowCount === 1) database.notify(fileAnswerChannel, id);
}

/** Takes the answer to a request, which is gone then; null if there is none yet. */
export async function takeFileAnswer(database: Database, id: string): Promise<FileAnswer | null> {
  const { rows } = await database.pool.query<{ answer: FileAnswer }>(
    "delete from file_request where id = $1 and answer is not null returning answer",
    [id],
  );
  return rows[0]?.answer ?? null;
}

/** Forgets a request that nobody waits for any longer. */
export async function forgetFileRequest(database: Database, id: string): Promise<void> {
  await database.pool.query("delete from file_request where id = $1", [id]);
}

/** Deletes what was asked by nodes that have stopped. @returns how many */
export async function pruneFileRequests(database: Database): Promise<number> {
  const { rowCount } = await database.pool.query(
    `delete from file_request where asked_at < now() - interval '${forgottenAfter}'`,
  );
  return rowCount ?? 0;
}

/** A submodule that a worker fetched for a session's clone. */
export interface KeptSubmodule {
  /** Its folder in the clone. */
  readonly path: string;
  /** The commit that was fetched. */
  readonly sha: string;
  /** Where it was fetched from. */
  readonly url: string;
}

/** A session's repository, and the commits that its files are of. */
export interface WorkspaceRepository {
  /** Null if it was removed. */
  readonly id: string | null;
  /** Null if it was removed. */
  readonly url: string | null;
  /** Folder of its clone in the workspace. */
  readonly directory: string;
  readonly baseSha: string | null;
  readonly headSha: string | null;
  readonly pushedSha: string | null;
  readonly submodules: readonly KeptSubmodule[];
}

/** What is recorded of a session's workspace. */
export interface RecordedWorkspace {
  readonly organizationId: string;
  readonly status: SessionStatus;
  readonly repositories: readonly WorkspaceRepository[];
}

/** What is recorded of a session's workspace; null if there is no such session. */
export async function readWorkspace(database: Database, sessionId: string): Promise<RecordedWorkspace | null> {
  const { rows } = await database.pool.query<RecordedWorkspace>(
    `select session.organization_id as "organizationId", session.status,
       coalesce((select json_agg(json_build_object('id', repository.id, 'url', repository.url, 'directory', part.directory,
           'baseSha', part.base_sha, 'headSha', part.head_sha, 'pushedSha', part.pushed_sha,
           'submodules', coalesce(part.submodules, '[]')) order by part.position)
         from session_repository part left join repository on repository.id = part.repository_id
         where part.session_id = session.id), '[]') as repositories
     from session where session.id = $1`,
    [sessionId],
  );
  return rows[0] ?? null;
}
