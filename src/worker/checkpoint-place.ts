import { join } from "node:path";
import { isAddressProblem, parseRepositoryUrl } from "../domain/repository.ts";
import type { InsidePlace } from "./inside.ts";
import type { Run } from "./run.ts";

/** Where a command of ours works among a session's files: in one repository's folder, or in that of all (`.`). */
export function placeOf({ dependencies, session }: Run, directory: string): InsidePlace {
  const urls = session.repositories.flatMap(({ url }) => {
    const address = parseRepositoryUrl(url);
    return isAddressProblem(address) ? [] : [address.cloneUrl];
  });
  const folders = dependencies.workspaces.folders(session.sessionId, urls);
  return { ...folders, workingDirectory: join(folders.workspace, directory) };
}
