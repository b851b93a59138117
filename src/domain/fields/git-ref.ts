/**
 * Maximum bytes of a branch name: what forges accept, and what fits into a file name if git stores the reference as a
 * file.
 */
const longestBytes = 244;

/**
 * Whether git accepts `name` as a branch name: the rules of git-check-ref-format(1) with `--branch`, and at most 244
 * bytes.
 * @see https://git-scm.com/docs/git-check-ref-format
 */
export function isBranchName(name: string): boolean {
  if (name === "" || name === "@" || name === "HEAD") return false;
  if (new TextEncoder().encode(name).length > longestBytes) return false;
  if (name.startsWith("-") || name.startsWith("/") || name.endsWith("/") || name.endsWith(".")) return false;
  if (name.includes("..") || name.includes("//") || name.includes("@{")) return false;
  if (!name.isWellFormed()) return false;
  // eslint-disable-next-line no-control-regex -- git forbids exactly these
  if (/[\u0000-\u0020\u007f~^:?*[\\]/u.test(name)) return false;
  return name.split("/").every((part) => !part.startsWith(".") && !part.endsWith(".lock"));
}
