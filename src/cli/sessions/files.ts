import type { Command } from "commander";
import { ClientError, type Client } from "../../client.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import type { WorkspaceFile, WorkspaceFolder } from "../../domain/sessions/workspace-file.ts";
import { oneLine, printable } from "../../printable.ts";
import { onServer, withConnectionFlags, withJsonFlag, type ConnectionFlags } from "../remote/connect.ts";
import { findSession } from "../remote/session-id.ts";
import type { CommandContext, Terminal } from "../terminal/commands.ts";
import { json } from "../terminal/json.ts";

interface FilesOptions extends ConnectionFlags {
  readonly json?: true;
}

/** Adds the command `files`. */
export function addFilesCommand(program: Command, { terminal }: CommandContext): void {
  const command = program
    .command("files <session> [path]")
    .description("print a folder of a session's workspace, or a file of it, as its work was last taken out");
  withJsonFlag(withConnectionFlags(command)).action(
    (session: string, path: string | undefined, options: FilesOptions) =>
      onServer(options, terminal, async ({ client }) => {
        const id = await findSession(client, session);
        const wanted = (path ?? "").replace(/^\.\//u, "").replace(/\/$/u, "");
        const folder = await readFolder(client, id, wanted);
        if (folder === null) await printFile(client, id, wanted, options, terminal);
        else terminal.write(options.json === true ? json(folder) : lines(folder));
      }),
  );
}

/** All of a folder; null: it is a file. */
async function readFolder(client: Client, id: string, path: string): Promise<WorkspaceFolder | null> {
  const pageAfter = (cursor: string | null): Promise<WorkspaceFolder> => {
    const query = new URLSearchParams({ path, limit: "1000", ...(cursor !== null && { cursor }) });
    return client.call("workspaceFolderSchema", `/session/${id}/file/list?${query.toString()}`);
  };
  try {
    let folder = await pageAfter(null);
    while (folder.nextCursor !== null) {
      const next = await pageAfter(folder.nextCursor);
      folder = { ...next, entries: [...folder.entries, ...next.entries] };
    }
    return folder;
  } catch (error) {
    if (error instanceof ClientError && error.status === 400 && path !== "") return null;
    throw error;
  }
}

const lines = ({ entries }: WorkspaceFolder): string =>
  entries.map(({ name, type }) => `${oneLine(name)}${type === "folder" || type === "submodule" ? "/" : ""}\n`).join("");

async function printFile(
  client: Client,
  id: string,
  path: string,
  options: FilesOptions,
  terminal: Terminal,
): Promise<void> {
  const parts: WorkspaceFile[] = [];
  for (let offset: number | null = 0; offset !== null;) {
    const query = new URLSearchParams({ path, offset: String(offset), limit: "500000" });
    const part: WorkspaceFile = await client.call(
      "workspaceFileSchema",
      `/session/${id}/file/read?${query.toString()}`,
    );
    parts.push(part);
    offset = part.nextOffset;
  }
  const [first] = parts;
  if (first === undefined) return;
  const text = first.text === null ? null : parts.map((part) => part.text ?? "").join("");
  if (options.json === true) {
    terminal.write(json({ ...first, text, nextOffset: null }));
    return;
  }
  if (text === null) throw new InvalidInputError(`${path} is no text: get it from the session's branch`);
  terminal.write(printable(text));
  if (!first.complete) terminal.warn(`${path} has more than the 1 MiB that can be shown\n`);
}
