import { expect, test } from "vitest";
import { approvalWords, type ApprovalRules } from "./approval.ts";

const silent: ApprovalRules = { excludesPusher: null, excludesAuthor: null, pushDismisses: null };

test.each<[Partial<ApprovalRules>, string | null]>([
  [{}, null],
  [{ excludesPusher: false, excludesAuthor: false, pushDismisses: false }, null],
  [
    { excludesPusher: true, pushDismisses: true },
    "an approval by the account that pushed last does not count, so if Offstage pushes with yours, somebody else has to approve; each push takes back the approvals before it",
  ],
  [{ excludesAuthor: true }, "an approval by the account that opened it does not count"],
  [
    { excludesPusher: true, excludesAuthor: true },
    "an approval by the account that pushed last does not count, so if Offstage pushes with yours, somebody else has to approve; nor does one by the account that opened it",
  ],
  [{ pushDismisses: true }, "each push takes back the approvals before it"],
])("of %j it says %s", (rules, words) => expect(approvalWords({ ...silent, ...rules })).toBe(words));

const person = "Ada";
test.each<[Partial<ApprovalRules>, string | null]>([
  [{}, null],
  [{ excludesAuthor: false }, null],
  [
    { excludesAuthor: true },
    "an approval does not count that is by Ada, in whose name it was opened, so somebody else has to approve",
  ],
  [
    { excludesEveryAuthor: true, pushDismisses: true },
    "an approval does not count that is by Ada, in whose name it was opened, so somebody else has to approve; each push takes back the approvals before it",
  ],
  [
    { excludesPusher: true, excludesEveryAuthor: true },
    "an approval by the account that pushed last does not count, so if Offstage pushes with yours, somebody else has to approve; nor does one by Ada, in whose name it was opened, so somebody else has to approve",
  ],
])("of %j it says of a person who opened it %s", (rules, words) =>
  expect(approvalWords({ ...silent, ...rules }, person)).toBe(words),
);

test("what is so of every pull request of a forge is said only if a person opened it", () => {
  expect(approvalWords({ ...silent, excludesEveryAuthor: true })).toBeNull();
});
