/**
 * The path of an address of a forge, with its query: of a run of CI, forges name the whole address in one delivery and the path alone in
 * another.
 */
export function pathOfAddress(url: string): string {
  return url.replace(/^https?:\/\/[^/]*/u, "");
}
