import { randomUUID } from "node:crypto";
import type { PullRequestAddition } from "../src/domain/repositories/pull-request-settings.ts";
import { same, unless, within, type Expect, type Trial } from "./forge-trial.ts";

/**
 * Tries how Offstage answers on a forge, at an open pull request: a comment, the description, a commit's status, and what
 * `additions` name.
 * @param sha the pull request's newest commit
 * @param additions labels, reviewers or assignees that the forge has
 */
export async function expectFeedback(
  trial: Trial,
  expect: Expect,
  { number, sha }: { readonly number: number; readonly sha: string },
  additions: readonly PullRequestAddition[],
): Promise<void> {
  const { forge, address, signal } = trial;
  const { feedback } = forge;
  if (feedback === null) throw new Error(`${forge.kind} has nowhere to answer`);
  await expect("a comment is posted once, though it is asked for twice", async () => {
    const comment = { key: randomUUID(), text: "A comment of a trial of Offstage.", since: new Date() };
    const post = () => feedback.comment(address, { kind: "pullRequest", number }, comment, signal);
    const { id } = await post();
    await within(trial, async () => {
      const again = await post();
      same([again.id, again.created], [id, false], "what was found");
    });
  });
  await expect("the description is changed, and what it said stays", async () => {
    const line = `Changed by a trial: ${randomUUID()}`;
    await forge.editPullRequest(address, number, (body) => `${body}\n\n${line}`, signal);
    await within(trial, async () => {
      let read = "";
      await forge.editPullRequest(
        address,
        number,
        (body) => {
          read = body;
          return null;
        },
        signal,
      );
      unless(!read.includes(line), "it does not have what was written");
      unless(!read.includes("npm run accept:forge"), "it lost what it said before");
    });
  });
  await expect("a status is set at the commit, and set again", async () => {
    const status = { name: "offstage/acceptance", description: "A trial of Offstage", url: "https://offstage.example" };
    await feedback.setStatus(address, sha, { ...status, state: "pending" }, signal);
    await feedback.setStatus(address, sha, { ...status, state: "success" }, signal);
  });
  for (const addition of additions) {
    await expect(`it gets ${addition.field} (${addition.names.join(", ")}), also if it has them`, async () => {
      await feedback.add(address, number, addition, signal);
      await feedback.add(address, number, addition, signal);
    });
  }
}
