import { timingSafeEqual } from "node:crypto";
import { isUuid } from "../../domain/fields/uuid.ts";
import { noticeKinds, type NoticeKind } from "../../domain/notices/notice.ts";
import type { Vault } from "../secrets/vault.ts";

/** The content of a mail's unsubscribe link. */
export interface Unsubscribing {
  readonly userId: string;
  readonly kind: NoticeKind;
}

const contentOf = (userId: string, kind: string): string => `unsubscribe ${userId} ${kind}`;

/**
 * A token that ends mails of one kind to one person, and nothing else: any holder of the mail may use it, also without
 * signing in.
 */
export async function unsubscribeToken(vault: Vault, userId: string, kind: string): Promise<string> {
  return `${userId}.${kind}.${(await vault.hash(contentOf(userId, kind))).toString("base64url")}`;
}

/** The content of a token; null if it is not ours, or of another master key. */
export async function readUnsubscribeToken(vault: Vault, token: string): Promise<Unsubscribing | null> {
  const [, userId = "", kind = "", hash = ""] = /^([^.]+)\.(.+)\.([\w-]{43})$/u.exec(token) ?? [];
  const known = noticeKinds.find((each) => each === kind);
  if (!isUuid(userId) || known === undefined) return null;
  const own = await vault.hash(contentOf(userId, kind));
  // As text: several texts decode to the same bytes.
  return timingSafeEqual(Buffer.from(own.toString("base64url")), Buffer.from(hash)) ? { userId, kind: known } : null;
}
