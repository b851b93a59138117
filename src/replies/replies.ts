import { createLinearReply } from "./linear.ts";
import type { Reply } from "./reply.ts";
import { createSlackReply } from "./slack.ts";

/** All services that take answers back, by the target's. @param urls of their APIs, Slack's with a slash at its end */
export function createReplies(urls: { readonly slack: string; readonly linear: string }): Reply {
  const [slack, linear] = [createSlackReply(urls.slack), createLinearReply(urls.linear)];
  return {
    send: (target, text, call) =>
      target.service === "slack" ? slack.send(target, text, call) : linear.send(target, text, call),
  };
}
