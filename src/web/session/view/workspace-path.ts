/** A path in the sandbox without that of the session's workspace. */
export function inWorkspace(path: string): string {
  return path.replace(/^.*\/sessions\/[0-9a-f-]{36}\/workspace\//u, "");
}
