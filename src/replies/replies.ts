import { createLinearReply } from "./linear.ts";
import type { Reply } from "./reply.ts";
import { createSlackReply } from "./slack.ts";

/** The addresses of the services' APIs; GovSlack has another (https://docs.slack.dev/govslack). */
export const serviceUrls = { slack: "https://slack.com/api/", linear: "https://api.linear.app/graphql" };

/** All services that take answers back, by the target's. */
export function createReplies(urls: typeof serviceUrls = serviceUrls): Reply {
  const [slack, linear] = [createSlackReply(urls.slack), createLinearReply(urls.linear)];
  return {
    send: (target, text, call) =>
      target.service === "slack" ? slack.send(target, text, call) : linear.send(target, text, call),
  };
}
