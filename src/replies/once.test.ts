import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { linearError, type LinearService, startLinear } from "../../test/replies/linear-service.ts";
import type { Fault } from "../../test/replies/service-server.ts";
import { type SlackService, startSlack } from "../../test/replies/slack-service.ts";
import type { ReplyTarget } from "../domain/automations/reply-target.ts";
import { createReplies } from "./replies.ts";
import { type Reply, ReplyRefused, ReplyUnavailable } from "./reply.ts";

let slack: SlackService;
let linear: LinearService;
let replies: Reply;

beforeAll(async () => {
  [slack, linear] = await Promise.all([startSlack(), startLinear()]);
  replies = createReplies({ slack: slack.apiUrl, linear: linear.apiUrl });
});
afterAll(() => Promise.all([slack.close(), linear.close()]));

const answers = (status: number, body: unknown): Fault => ({ kind: "answer", status, body: JSON.stringify(body) });
const anyService: readonly Fault[] = [
  { kind: "lost" },
  answers(502, null),
  answers(429, null),
  answers(200, "cut off"),
];
const faultsOfSlack = fc.constantFrom<Fault>(
  ...anyService,
  answers(200, { ok: false, error: "fatal_error" }),
  answers(200, { ok: false, error: "ratelimited" }),
  answers(200, { ok: false, error: "not_in_channel" }),
);
const faultsOfLinear = fc.constantFrom<Fault>(
  ...anyService,
  answers(200, linearError("oh", "internal error").body),
  answers(400, linearError("slow down", "ratelimited").body),
  answers(200, linearError("no", "forbidden").body),
);

/** Tries as an outbox does, until the reply is there or is refused. @returns its id, null if it was refused */
async function tryUntilDone(target: ReplyTarget, id: string, token: string): Promise<string | null> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const call = { id, token, isRepeated: attempt > 0, signal: new AbortController().signal };
      return (await replies.send(target, `text of ${id}`, call)).id;
    } catch (error) {
      if (error instanceof ReplyRefused) return null;
      if (!(error instanceof ReplyUnavailable)) throw error;
    }
  }
}

describe("whatever goes wrong on the way, a reply is there once, or at most once if it was refused", () => {
  it("on Slack", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(faultsOfSlack, { maxLength: 6 }), fc.uuid({ version: 4 }), async (faults, id) => {
        slack.thread.splice(1);
        slack.faults.splice(0, Infinity, ...faults);
        const sent = await tryUntilDone(slack.target, id, slack.token);
        expect(slack.thread.length - 1).toBeLessThanOrEqual(1);
        expect(sent === null || sent === slack.thread[1]?.ts).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it("on Linear", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(faultsOfLinear, { maxLength: 6 }), fc.uuid({ version: 4 }), async (faults, id) => {
        linear.comments.splice(0);
        linear.faults.splice(0, Infinity, ...faults);
        const sent = await tryUntilDone(linear.target, id, linear.token);
        expect(linear.comments.length).toBeLessThanOrEqual(1);
        expect(sent === null || sent === linear.comments[0]?.id).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});
