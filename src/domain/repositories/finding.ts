import { z } from "zod";
import { text } from "../fields/text.ts";

/** Rule of a finding for a file that was not searched: it is too large, or the search took too long. */
export const notReadRule = "not-read";

/** Maximum number of entries in a list of allowed findings. */
export const allowedFindingsLimit = 500;
const patternLimit = 300;

/** A finding of a token's shape that an admin allows. A finding must match every field that the entry has. */
export const allowedFindingSchema = z
  .object({
    path: text(patternLimit)
      .refine((path) => !path.startsWith("/"), "is a path within the repository: write it without / before it")
      .optional()
      .meta({ description: "Path in the repository; `*` stands for any part of a name, `**` for any folders." }),
    rule: z
      .string()
      .regex(/^[a-z0-9-]{1,100}$/u, "must be a rule as a failure names it, for example github")
      .optional()
      .meta({ description: "Rule as a failure names it, for example `github`; `not-read` for what is too large." }),
    fingerprint: z
      .string()
      .regex(/^[0-9a-f]{24}$/u, "must be the 24 hexadecimal digits that a failure names")
      .optional()
      .meta({ description: "Of the value, as a failure names it." }),
  })
  .strict()
  .refine(
    ({ path, rule, fingerprint }) => path !== undefined || rule !== undefined || fingerprint !== undefined,
    "must have a path, a rule or a fingerprint",
  );
/** See `allowedFindingSchema`. */
export type AllowedFinding = z.infer<typeof allowedFindingSchema>;

/** A repository's list of allowed findings. */
export const allowedFindingsSchema = z
  .array(allowedFindingSchema)
  .max(allowedFindingsLimit, `must be at most ${allowedFindingsLimit} entries`);

/** Whether an entry of the list allows the finding. @param finding.fingerprint null if the file was not searched */
export function isAllowed(
  allowed: readonly AllowedFinding[],
  finding: { readonly path: string; readonly rule: string; readonly fingerprint: string | null },
): boolean {
  return allowed.some(
    ({ path, rule, fingerprint }) =>
      (path === undefined || matchesPath(path, finding.path)) &&
      (rule === undefined || rule === finding.rule) &&
      (fingerprint === undefined || fingerprint === finding.fingerprint),
  );
}

/**
 * Whether a path matches a pattern: `*` stands for any characters but `/`, `**` for any characters, and `**` followed
 * by a slash for any folders or none.
 * Dynamic programming over the pattern's parts: the time is at most proportional to the pattern's length times the
 * path's.
 */
export function matchesPath(pattern: string, path: string): boolean {
  let reached = new Uint8Array(path.length + 1);
  reached[0] = 1;
  for (const [part] of pattern.matchAll(/\*\*\/|\*+|[^*]/gsu)) {
    const next = new Uint8Array(path.length + 1);
    if (part === "**/") {
      let before = false;
      for (let at = 0; at <= path.length; at += 1) {
        before ||= reached[at] === 1;
        if (reached[at] === 1 || (before && path[at - 1] === "/")) next[at] = 1;
      }
    } else if (part.startsWith("*")) {
      let within = false;
      for (let at = 0; at <= path.length; at += 1) {
        if (part === "*" && at > 0 && path[at - 1] === "/") within = false;
        within ||= reached[at] === 1;
        if (within) next[at] = 1;
      }
    } else {
      for (let at = 0; at < path.length; at += 1) {
        if (reached[at] === 1 && path.startsWith(part, at)) next[at + part.length] = 1;
      }
    }
    reached = next;
  }
  return reached[path.length] === 1;
}
