/**
 * The environment of one of our own threads: nothing but the folder in which Node caches compiled code, if the operator
 * set it (`NODE_COMPILE_CACHE`). Without it each thread compiles all of its code again.
 * @param own the server's environment
 */
export function compileCache(own: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const folder = own["NODE_COMPILE_CACHE"];
  return folder === undefined || folder === "" ? {} : { NODE_COMPILE_CACHE: folder };
}
