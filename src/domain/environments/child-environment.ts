/** PATH if the server's environment has none. */
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * The environment of a program that the server starts: only the variables named here. The server's own environment
 * holds its keys, and every process of the program's user can read a program's initial environment.
 * @param own the server's environment: PATH and TZ are taken from it
 * @param more further variables of this program
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
