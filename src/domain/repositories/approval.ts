import { z } from "zod";

/** What a forge tells of who may approve pull requests into a branch. Null: it does not say. */
export const approvalRulesSchema = z.object({
  /** Whether the approval of whoever pushed last, or of whoever made a commit of it, does not count. */
  excludesPusher: z.boolean().nullable(),
  /** Whether the approval of whoever opened it does not count. */
  excludesAuthor: z.boolean().nullable(),
  /** Whether nobody's approval of what they opened counts on this forge, which needs a word only if a person opened it. */
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
