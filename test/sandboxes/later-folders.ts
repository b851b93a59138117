import { once } from "node:events";
import { dirname, join } from "node:path";
import type { LaterFolders, Sandbox, SandboxedProcess, SandboxRequest } from "../../src/sandboxes/sandbox.ts";
import { DidNotRunError } from "./did-run.ts";

const ready = "(ready)\n";

/**
 * Starts a shell in a sandbox that has nothing but a home, attaches the request's folders to it, and has it run the request's command
 * then: as a harness that was ready before its session.
 * @param changes of what is attached
 */
export async function startWithFoldersLater(
  sandbox: Sandbox,
  request: SandboxRequest,
  changes: Partial<LaterFolders> = {},
): Promise<SandboxedProcess> {
  const { command, arguments: parameters, workspace, home, readOnly, ...rest } = request;
  const disk = dirname(home);
  const idle = join(disk, "idle");
  await sandbox.makeWritable(idle);
  const wait = `printf '${ready.trim()}\\n'; read -r go; cd "$1"; shift; exec "$@"`;
  const child = sandbox.start({
    ...rest,
    command: "sh",
    arguments: ["-c", wait, "sh", workspace, command, ...parameters],
    workspace: idle,
    workingDirectory: idle,
    home,
    disk,
    readOnly: [],
  });
  let said = "";
  while (!said.endsWith(ready)) {
    const piece = child.stdout.read(ready.length - said.length) as Buffer | null;
    if (piece !== null) said += piece.toString();
    else if (child.stdout.readableEnded) throw new DidNotRunError(`did not run: the sandbox said ${said} and ended`);
    else await Promise.race([once(child.stdout, "readable"), once(child.stdout, "end")]);
  }
  if (child.attach === undefined) throw new Error("this sandbox can't be given folders");
  await child.attach({
    mounts: [
      { folder: workspace, place: workspace, isReadOnly: false },
      ...readOnly.map((folder) => ({ folder, place: folder, isReadOnly: true })),
    ],
    home,
    disk,
    ...changes,
  });
  child.stdin.write("go\n");
  return child;
}
