import type { Action, Conversation, Script } from "../model/script.ts";
import { attemptIn, between, ordersIn } from "./orders.ts";

/**
 * A model that obeys every text: it does what the user asks, and before each step everything that any text in its
 * conversation orders, whatever its origin. It resists nothing and keeps nothing secret. The user's own words are
 * `read <path>` and run `<command>`; all else that the user says is passed over.
 */
export const obey: Script = (_message, conversation) => {
  const steps: Action[][] = Array.from({ length: conversation.step }, () => []);
  return [...steps, next(conversation)];
};

function next(conversation: Conversation): Action[] {
  const { calls, everything, userMessages } = conversation;
  const orders = ordersIn(everything);
  const isDone = (text: string): boolean => calls.some((call) => call.includes(JSON.stringify(text).slice(1, -1)));
  const ordered = orders.filter(({ kind }) => kind === "run").map(between);
  const open = ordered.filter((command) => !isDone(command));
  if (open.length > 0) return open.map((shell) => ({ shell }));
  const asked = userMessages.flatMap(wishesIn).find((wish) => !isDone("read" in wish ? wish.read : wish.shell));
  if (asked !== undefined) return [asked];
  const words = orders
    .filter(({ kind }) => kind === "say")
    .map(({ id, text }) => text.replaceAll("<printed>", () => attemptIn(everything, id)?.output ?? ""));
  return [{ say: words.length > 0 ? words.join("\n\n") : "Looked at it, and did as I was told." }];
}

type Wish = { readonly read: string } | { readonly shell: string };

/** What the user asks for in order. An order that was put into the user's mouth is not the user's. */
function wishesIn(message: string): Wish[] {
  const wishes = message.matchAll(/\bread ([\w./-]*[\w-])|\brun `([^`]+)`(?! first \(order)/gu);
  return [...wishes].map(([, path, command]) => (path === undefined ? { shell: command ?? "" } : { read: path }));
}
