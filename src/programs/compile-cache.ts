import { lstatSync, mkdirSync, statSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { userInfo } from "node:os";
import { join } from "node:path";

/**
 * Has Node cache compiled code, and TypeScript stripped of its types, from one start to the next: otherwise each start
 * compiles everything again. The cache is the user's folder `.cache/offstage/compiled`, unless the operator
 * names another with `NODE_COMPILE_CACHE`. Without such a folder nothing is cached. Threads and programs that get
 * `compileCache` use it, too.
 */
export function useCompileCache(): void {
  const own = process.env["NODE_COMPILE_CACHE"];
  // Node has read the variable itself.
  if (own !== undefined && own !== "") return;
  const folder = ownFolder();
  if (folder === null || enableCompileCache(folder).directory === undefined) return;
  process.env["NODE_COMPILE_CACHE"] = folder;
}

/** The folder of the user whose process this is; null if there is none. */
function ownFolder(): string | null {
  try {
    return compiledFolder(userInfo());
  } catch {
    // A user that the system does not know: compiled each time.
    return null;
  }
}

/**
 * The folder for compiled code below a user's home, which is made if need be. A user who can write there decides what
 * runs, so no other user may: neither there nor in a folder above it. The home is that of the system's list of users,
 * and not of a variable, which `sudo` may have kept.
 * @returns null if there is none, or others can write there
 */
export function compiledFolder({ homedir, uid }: { readonly homedir: string; readonly uid: number }): string | null {
  const cache = join(homedir, ".cache");
  const folder = join(cache, "offstage", "compiled");
  try {
    if (!statSync(homedir).isDirectory()) return null;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const isOwn = [homedir, cache, join(cache, "offstage"), folder].every((path) => {
      const found = lstatSync(path);
      return found.isDirectory() && [uid, 0].includes(found.uid) && (found.mode & 0o022) === 0;
    });
    return isOwn ? folder : null;
  } catch {
    // No home, or no place in it: compiled each time.
    return null;
  }
}

/**
 * The environment of one of our own threads: nothing but the folder in which Node caches compiled code, if there is one
 * (`NODE_COMPILE_CACHE`). Without it each thread compiles all of its code again.
 * @param own the server's environment
 */
export function compileCache(own: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const folder = own["NODE_COMPILE_CACHE"];
  return folder === undefined || folder === "" ? {} : { NODE_COMPILE_CACHE: folder };
}
