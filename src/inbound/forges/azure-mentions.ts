import type { ForgeEvent } from "../../domain/automations/forge-event.ts";
import type { InboundEvent } from "../../domain/automations/inbound-event.ts";
import { mentionOf } from "./mentioned-name.ts";

/**
 * A comment on a pull request of Azure DevOps, with the name of one account in place of its id: the editor writes
 * `@<id>` for a picked account, and no delivery says whose that is. Other ids stay as they are.
 * @param account null: none is known
 */
export function withNameOf(
  delivered: InboundEvent,
  account: { readonly id: string; readonly name: string } | null,
): InboundEvent {
  const event = delivered.event as unknown as ForgeEvent;
  const name = account === null ? null : mentionOf(account.name);
  if (account === null || name === null || event.comment === undefined) return delivered;
  const isIt = (id: string): boolean => id.toLowerCase() === account.id.toLowerCase();
  const body = event.comment.body.replaceAll(/@<([0-9a-f-]{36})>/giu, (mention, id: string) =>
    isIt(id) ? name : mention,
  );
  return { ...delivered, event: { ...event, comment: { ...event.comment, body } } };
}
