/** Where programs are looked for if the server's environment does not say. */
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * The environment of a program that the server starts: named variables and nothing else. The server's own has its keys, and
 * every process of the program's user can read what the program was started with.
 * @param own the server's environment, of which it takes the path and the time zone
 * @param more what this program needs beside them
 */
export function childEnvironment(
  own: Readonly<Record<string, string | undefined>>,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const timeZone = own["TZ"];
  return {
    PATH: own["PATH"] ?? usualPath,
    LC_ALL: "C",
    ...(timeZone !== undefined && { TZ: timeZone }),
    ...more,
  };
}

/**
 * The environment of a thread of our own: nothing of the server's but the folder in which Node keeps compiled code, if the
 * operator named one (`NODE_COMPILE_CACHE`). Without it each thread compiles all of its code anew.
 * @param own the server's environment
 */
export function compileCache(own: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const folder = own["NODE_COMPILE_CACHE"];
  return folder === undefined || folder === "" ? {} : { NODE_COMPILE_CACHE: folder };
}
