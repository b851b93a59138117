import type { WorkspaceEntry, WorkspaceFile, WorkspaceFolder } from "../../../domain/sessions/workspace-file.ts";
import { client } from "../../query.ts";

const entriesOfPage = 500;
const charactersOfPart = 100_000;

/** A folder as far as it was loaded. */
export interface LoadedFolder extends WorkspaceFolder {
  readonly entries: WorkspaceEntry[];
}

/** The first pages of a folder of a session's workspace. */
export async function readFolder(id: string, path: string, pages: number): Promise<LoadedFolder> {
  let folder: LoadedFolder | null = null;
  for (let page = 0; page < pages && (folder === null || folder.nextCursor !== null); page += 1) {
    const query = new URLSearchParams({ path, limit: String(entriesOfPage) });
    if (folder?.nextCursor != null) query.set("cursor", folder.nextCursor);
    const next: WorkspaceFolder = await client.call("workspaceFolderSchema", `/session/${id}/file/list?${query}`);
    folder = folder === null ? next : { ...next, entries: [...folder.entries, ...next.entries] };
  }
  if (folder === null) throw new Error("no page was asked for");
  return folder;
}

/** A part of a file of a session's workspace. */
export function readPart(id: string, path: string, offset: number): Promise<WorkspaceFile> {
  const query = new URLSearchParams({ path, offset: String(offset), limit: String(charactersOfPart) });
  return client.call("workspaceFileSchema", `/session/${id}/file/read?${query}`);
}
