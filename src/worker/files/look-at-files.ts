import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { ConflictError } from "../../domain/errors/errors.ts";
import type { Mask } from "../../domain/masking/mask.ts";
import {
  readableBytes,
  type FileAnswer,
  type FileQuestion,
  type FilesFrom,
  type WorkspaceEntry,
} from "../../domain/sessions/workspace-file.ts";
import {
  openPiece,
  readCheckpoint,
  type CheckpointStore,
  type StoredCheckpoint,
} from "../../store/checkpoints/checkpoints.ts";
import { readWorkspace, type RecordedWorkspace } from "../../store/sessions/file-requests.ts";
import { archivedFile, archivedFolder } from "./archived-files.ts";
import { askableName, pageOfFolder, type FoundEntry } from "./folder-page.ts";
import { hasCommit } from "../git/git.ts";
import { contentOf, entriesOf, entryAt, sizesOf, type CommitOptions } from "./git-files.ts";
import { isUnsearched, searchedBytes, shownText } from "./shown-text.ts";
import { inSubmodules } from "./submodule-files.ts";
import { withSnapshot, type Snapshot, type SnapshotPlaces } from "./snapshot.ts";

/** What looking at a session's files needs of the worker. */
export interface FileServices extends SnapshotPlaces, CheckpointStore {
  /** What may not be shown of an organization's: the server's secrets, and its own. */
  readonly maskOf: (organizationId: string) => Promise<Mask>;
}

/** A question about one session's files. */
interface Look extends RecordedWorkspace {
  readonly services: FileServices;
  readonly id: string;
  readonly checkpoint: StoredCheckpoint | null;
  readonly mask: Mask;
  readonly signal: AbortSignal;
}

const problem = (what: Extract<FileAnswer, { problem: unknown }>["problem"]): FileAnswer => ({ problem: what });

/**
 * Answers a question about a session's files: from the commits and the archive that were taken out of its sandbox, never from its
 * folders, in which an agent may be exchanging a file for a link.
 */
export async function lookAtFiles(
  services: FileServices,
  id: string,
  question: FileQuestion,
  signal: AbortSignal,
): Promise<FileAnswer> {
  const workspace = await readWorkspace(services.database, id);
  if (workspace === null) return problem("not kept");
  const checkpoint = await readCheckpoint(services.database, id);
  const mask = await services.maskOf(workspace.organizationId);
  const look: Look = { ...workspace, services, id, checkpoint, mask, signal };
  const { repositories } = workspace;
  if (repositories.length === 0) return lookAtArchive(look, question);
  if (question.path === "") return question.kind === "list" ? listRepositories(look, question) : problem("no file");
  const part = repositories.find(
    ({ directory }) => question.path === directory || question.path.startsWith(`${directory}/`),
  );
  if (part === undefined) return problem("missing");
  const path = question.path.slice(part.directory.length + 1);
  const answer = await withSnapshot(services, { id, status: workspace.status }, part, checkpoint, signal, (snapshot) =>
    inSubmodules(services, part.submodules, { snapshot, path, above: "" }, signal, (wanted) =>
      question.kind === "list"
        ? listInGit(
            look,
            { ...wanted.snapshot, base: wanted.above === "" ? part.baseSha : null },
            wanted.path,
            question,
          )
        : readInGit(look, wanted.snapshot, wanted.path, question),
    ),
  );
  return answer ?? problem("not kept");
}

type ListQuestion = Extract<FileQuestion, { kind: "list" }>;
type ReadQuestion = Extract<FileQuestion, { kind: "read" }>;

function listRepositories(look: Look, question: ListQuestion): FileAnswer {
  const all = look.repositories.map(({ directory }) => ({ name: Buffer.from(directory), type: "folder" }) as const);
  const page = pageOfFolder(all, question);
  if (page === null) return problem("bad cursor");
  return folderAnswer(look, question, null, { ...page, complete: true, sizeOf: () => null });
}

/** @param base the commit that the session began on; null if that is not known */
async function listInGit(
  look: Look,
  { repository, commit, from, base }: Snapshot & { readonly base: string | null },
  path: string,
  question: ListQuestion,
): Promise<FileAnswer> {
  const options = { cwd: repository, signal: look.signal };
  const folder = path === "" ? null : await entryAt({ ...options, commit }, path);
  if (path !== "" && folder === null) return problem("missing");
  if (folder?.type === "submodule") return problem("empty submodule");
  if (folder !== null && folder.type !== "folder") return problem("no folder");
  const { entries, complete } = await entriesOf(options, folder?.sha ?? commit);
  const page = pageOfFolder(entries, question);
  if (page === null) return problem("bad cursor");
  const files = page.entries.filter(({ type }) => type === "file");
  const sizes = await sizesOf(options, [...new Set(files.map(({ sha }) => sha))]);
  const before = base === null ? null : await entriesBefore({ ...options, commit: base }, path);
  return folderAnswer(look, question, from, {
    ...page,
    complete,
    sizeOf: ({ sha, type }) => (type === "file" ? (sizes.get(sha) ?? null) : null),
    changeOf({ name, sha }) {
      const was = before?.get(name.toString("latin1"));
      return before === null || was === sha ? null : was === undefined ? "added" : "changed";
    },
  });
}

/** The objects of a folder's entries in the commit that the session began on, by name; null if that is not known. */
async function entriesBefore(options: CommitOptions, path: string): Promise<ReadonlyMap<string, string> | null> {
  if (!(await hasCommit(options.commit, options))) return null;
  const folder = path === "" ? null : await entryAt(options, path);
  if (path !== "" && folder?.type !== "folder") return new Map();
  const { entries, complete } = await entriesOf(options, folder?.sha ?? options.commit);
  return complete ? new Map(entries.map(({ name, sha }) => [name.toString("latin1"), sha])) : null;
}

async function readInGit(look: Look, { repository, commit, from }: Snapshot, path: string, question: ReadQuestion) {
  const options = { cwd: repository, signal: look.signal };
  const entry = path === "" ? null : await entryAt({ ...options, commit }, path);
  if (entry === null) return problem(path === "" ? "no file" : "missing");
  if (entry.type !== "file" && entry.type !== "link") return problem("no file");
  const bytes = (await sizesOf(options, [entry.sha])).get(entry.sha);
  if (bytes === undefined) return problem("not kept");
  const content = await contentOf(options, entry.sha, searchedBytes);
  return fileAnswer(look, question, from, { type: entry.type, bytes, content });
}

async function lookAtArchive(look: Look, question: FileQuestion): Promise<FileAnswer> {
  const { services, id, checkpoint, signal } = look;
  const piece = checkpoint?.files ?? null;
  if (piece === null) return problem("not kept");
  const open = (): AsyncIterable<Buffer> => {
    const unpacked = createGunzip();
    // What breaks it off reaches the reader; a reader that has what it wanted breaks it off, which is nobody's error.
    pipeline(Readable.from(openPiece(services, id, piece, signal)), unpacked, () => undefined);
    return unpacked;
  };
  try {
    return question.kind === "list"
      ? await listArchive(look, question, open)
      : await readArchived(look, question, open);
  } catch (error) {
    // The next checkpoint has taken its place meanwhile.
    if (error instanceof ConflictError) return problem("not kept");
    throw error;
  }
}

async function listArchive(look: Look, question: ListQuestion, open: () => AsyncIterable<Buffer>): Promise<FileAnswer> {
  const found = await archivedFolder(open(), question.path);
  if (found === null) return problem("missing");
  const page = pageOfFolder(found.entries, question);
  if (page === null) return problem("bad cursor");
  return folderAnswer(look, question, "checkpoint", {
    ...page,
    complete: found.complete,
    sizeOf: ({ bytes }) => bytes,
  });
}

async function readArchived(
  look: Look,
  question: ReadQuestion,
  open: () => AsyncIterable<Buffer>,
): Promise<FileAnswer> {
  const found = await archivedFile(open, question.path, searchedBytes);
  if (found === null) return problem("missing");
  const { type, ...rest } = found;
  if (type !== "file" && type !== "link") return problem("no file");
  return fileAnswer(look, question, "checkpoint", { type, ...rest });
}

/** @param sizeOf the size of a file; null: it is none, or not known */
function folderAnswer<Entry extends FoundEntry>(
  { mask }: Look,
  { path }: ListQuestion,
  from: FilesFrom | null,
  found: {
    readonly entries: readonly Entry[];
    readonly nextCursor: string | null;
    readonly complete: boolean;
    readonly sizeOf: (entry: Entry) => number | null;
    readonly changeOf?: (entry: Entry) => WorkspaceEntry["change"];
  },
): FileAnswer {
  const entries = found.entries.map((entry): WorkspaceEntry => {
    const written = entry.name.toString("utf8");
    const name = mask.text(written);
    const isAskable = name === written && askableName(entry.name) !== null;
    const inner = path === "" ? name : `${path}/${name}`;
    const change = found.changeOf?.(entry) ?? null;
    return { name, path: isAskable ? inner : null, type: entry.type, bytes: found.sizeOf(entry), change };
  });
  return { folder: { path, from, entries, complete: found.complete, nextCursor: found.nextCursor } };
}

async function fileAnswer(
  { mask, signal }: Look,
  { path, offset, limit }: ReadQuestion,
  from: FilesFrom,
  { type, bytes, content }: { readonly type: "file" | "link"; readonly bytes: number; readonly content: Buffer },
): Promise<FileAnswer> {
  const complete = bytes <= readableBytes;
  let whole: string | null;
  try {
    whole = await shownText(content, mask, signal);
  } catch (error) {
    if (isUnsearched(error)) return problem("not read");
    throw error;
  }
  if (whole === null) return { file: { path, from, type, bytes, text: null, offset: 0, nextOffset: null, complete } };
  // No part may end within a character of two units.
  const start = isWithinPair(whole, offset) ? offset - 1 : Math.min(offset, whole.length);
  const cut = Math.max(start + limit, start + 2);
  const end = cut < whole.length && isWithinPair(whole, cut) ? cut - 1 : cut;
  const text = whole.slice(start, end);
  const nextOffset = end < whole.length ? end : null;
  return { file: { path, from, type, bytes, text, offset: start, nextOffset, complete } };
}

/** Whether a place in a text is between the halves of a surrogate pair. */
function isWithinPair(text: string, at: number): boolean {
  return at > 0 && at < text.length && (text.codePointAt(at - 1) ?? 0) > 0xffff;
}
