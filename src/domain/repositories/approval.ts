import { z } from "zod";

/** A forge's rules for who may approve pull requests into a branch. Null: it does not say. */
export const approvalRulesSchema = z.object({
  /** Whether an approval does not count that is by the last pusher, or by the author of a commit. */
  excludesPusher: z.boolean().nullable(),
  /** Whether an approval by the author of the pull request does not count. */
  excludesAuthor: z.boolean().nullable(),
  /** Whether no author may approve their own pull request on this forge; shown only if a person opened it. */
  excludesEveryAuthor: z.boolean().optional(),
  /** Whether a push takes back the approvals before it. */
  pushDismisses: z.boolean().nullable(),
});
/** See `approvalRulesSchema`. */
export type ApprovalRules = z.infer<typeof approvalRulesSchema>;

/**
 * Who may approve a pull request of Offstage's, as a part of a sentence; null: nothing is known that people would miss.
 * @param openedBy the person in whose name it was opened; null: Offstage's own account opened it
 */
export function approvalWords(
  { excludesPusher, excludesAuthor, excludesEveryAuthor, pushDismisses }: ApprovalRules,
  openedBy: string | null = null,
): string | null {
  const ofPusher =
    "an approval by the account that pushed last does not count, so if Offstage pushes with yours, somebody else has to approve";
  const isAuthorOut = excludesAuthor === true || (excludesEveryAuthor === true && openedBy !== null);
  const isFirst = excludesPusher !== true;
  const words = [
    ...(isFirst ? [] : [ofPusher]),
    ...(isAuthorOut ? [wordsOfAuthor(openedBy, isFirst)] : []),
    ...(pushDismisses === true ? ["each push takes back the approvals before it"] : []),
  ];
  return words.length === 0 ? null : words.join("; ");
}

function wordsOfAuthor(openedBy: string | null, isFirst: boolean): string {
  if (openedBy === null) {
    return isFirst
      ? "an approval by the account that opened it does not count"
      : "nor does one by the account that opened it";
  }
  const who = `${openedBy}, in whose name it was opened, so somebody else has to approve`;
  return isFirst ? `an approval does not count that is by ${who}` : `nor does one by ${who}`;
}
