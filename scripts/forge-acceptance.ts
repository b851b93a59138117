import { randomBytes } from "node:crypto";
import { expectFeedback } from "./feedback-acceptance.ts";
import {
  begin,
  expecting,
  same,
  unless,
  within,
  type Expect,
  type Expectation,
  type Subject,
  type Trial,
} from "./forge-trial.ts";

/**
 * Tries a real forge through the product's own adapter and git: pushes branches with names of their own, opens, finds, reads and
 * closes pull requests, and deletes the branches. The pull requests stay, closed.
 * @param report called with each expectation as it is known
 * @returns whether all are met
 * @throws Error if the trial can't begin: the repository is not served, or can't be cloned
 */
export async function acceptForge(subject: Subject, report: (met: Expectation) => void): Promise<boolean> {
  const branches = ["one", "two"].map((name) => `offstage-acceptance/${randomBytes(6).toString("hex")}-${name}`);
  const { trial, end } = await begin(subject);
  const { expect, isMet } = expecting(report);
  try {
    await expectAll(trial, expect, branches);
  } finally {
    await expect("the branches are deleted", () => trial.remove(branches));
    await end();
  }
  return isMet();
}

async function expectAll(trial: Trial, expect: Expect, [one = "", two = ""]: readonly string[]): Promise<void> {
  const { forge, address, signal, target } = trial;
  const first = await trial.commit(null);
  const second = await trial.commit(first);
  const find = () => forge.findPullRequest(address, one, target, signal);
  let number = 0;

  await expect("the forge says that the token may push and open pull requests", async () => {
    const access = await forge.readAccess(address, one, signal);
    same(access?.readOnly ?? null, null, "why it is read-only");
    unless(access?.mayPush === false, "the token may not push");
    unless(access?.hasPullRequests === false, "pull requests are turned off");
  });
  await expect("a branch without a pull request has none", async () => same(await find(), null, "what was found"));
  // All that follows is about that branch: each would wait as long as a forge may need to know what was pushed.
  if (!(await expect("a branch is pushed", () => trial.push(first, one)))) return;
  await expect("a pull request is opened for a branch that was pushed a moment ago", async () => {
    const opened = await trial.open(one, first);
    number = opened.number;
    same([opened.created, opened.state, opened.head, opened.target], [true, "open", one, target], "what was opened");
  });
  await expect("it is found instead of opening a second one, at once", async () => {
    const again = await trial.open(one, first);
    same([again.number, again.created], [number, false], "what was found");
  });
  await expect("it is found by its branches", () =>
    within(trial, async () => same((await find())?.number, number, "it")),
  );
  await expect("it is read by its number, with its mark and its commit", async () => {
    const read = await forge.readPullRequest(address, number, signal);
    same([read.state, read.mark?.sha, read.headSha], ["open", first, first], "what was read");
  });
  await expect("it follows its branch", async () => {
    await trial.push(second, one);
    await within(trial, async () => {
      same((await forge.readPullRequest(address, number, signal)).headSha, second, "its commit");
    });
  });
  await expect("of two that ask at once, one opens it", async () => {
    await trial.push(first, two);
    const opened = await Promise.all([trial.open(two, first), trial.open(two, first)]);
    same(new Set(opened.map((each) => each.number)).size, 1, "how many there are");
    await trial.close(opened[0].number);
  });
  await expect("a branch that is not there is refused in the forge's words", () => refused(trial, `${one}-not-there`));
  await expect("a reviewer who does not exist is reported, and nothing else happens", () =>
    refusedReviewer(trial, number),
  );
  await expectFeedback(trial, expect, { number, sha: second }, trial.subject.additions ?? []);
  await expectAfterClose(trial, expect, one, { number, first, second });
}

/** The expectations of a pull request that was closed by hand. */
async function expectAfterClose(
  trial: Trial,
  expect: Expect,
  branch: string,
  { number, first, second }: { readonly number: number; readonly first: string; readonly second: string },
): Promise<void> {
  const { forge, address, signal } = trial;
  await expect("it is closed", async () => {
    await trial.close(number);
    await within(trial, async () => {
      same((await forge.readPullRequest(address, number, signal)).state, "closed", "its state");
      same((await forge.findPullRequest(address, branch, trial.target, signal))?.state, "closed", "its listed state");
    });
  });
  await expect("once it is closed, no other is opened for the same commits", async () => {
    for (const sha of [first, second]) {
      const again = await trial.open(branch, sha);
      same([again.number, again.state, again.created], [number, "closed", false], "what was found");
    }
  });
  await expect("commits after that get another one, which is a draft", async () => {
    const third = await trial.commit(second);
    await trial.push(third, branch);
    const other = await trial.open(branch, third, true);
    same([other.created, other.number === number], [true, false], "what was opened");
    // On GitHub private repositories have drafts with a paid plan alone.
    unless(other.draft === false && forge.kind !== "github", "it is no draft");
    await trial.close(other.number);
  });
}

async function refused({ forge, address, target, signal }: Trial, head: string): Promise<void> {
  const request = { head, target, title: "A trial of Offstage", body: "" };
  const thrown = await forge.openPullRequest(address, request, signal).then(
    ({ url }) => ({ code: `opened ${url}`, message: "" }),
    (error: unknown) => error as { readonly code: string; readonly message: string },
  );
  same(thrown.code, "pull_request_refused", "how it ended");
  unless(thrown.message.endsWith("it gave no reason"), "the forge gave no reason");
}

async function refusedReviewer({ forge, address, signal }: Trial, number: number): Promise<void> {
  const name = `nobody-${randomBytes(6).toString("hex")}`;
  const addition = { field: "reviewers", names: [name] } as const;
  const thrown = await forge.feedback?.add(address, number, addition, signal).then(
    () => ({ code: "added", message: "" }),
    (error: unknown) => error as { readonly code: string; readonly message: string },
  );
  same(thrown?.code, "pull_request_refused", "how it ended");
  unless(thrown?.message.includes(name) !== true, "the reviewer is not named");
}
