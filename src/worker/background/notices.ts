import { allSettled } from "../../all-settled.ts";
import { createMailer, type Mailer, type MailSettings } from "../../channels/mail.ts";
import { createPushRequest, type PushKeys } from "../../channels/push.ts";
import type { Database } from "../../database/database.ts";
import { messageOf } from "../../domain/errors/errors.ts";
import type { NoticeChannel } from "../../domain/notices/notice.ts";
import { mailBodies, noticeWords, type NoticeWords } from "../../domain/notices/words.ts";
import { createClaimLoop } from "../../lifecycle/claim-loop.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
import { joinServices, type Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import type { Proxies } from "../../outbound/proxies.ts";
import { claimNotices, fanOutNotices, finishNotice, type ClaimedNotice } from "../../store/notices/deliveries.ts";
import { dropSubscription, openSubscription } from "../../store/notices/subscriptions.ts";
import type { Vault } from "../../store/secrets/vault.ts";
import type { TellingOutcome } from "../../store/telling-outcome.ts";
import { postTo } from "./http-post.ts";
import { createInvitationMails } from "./invitation-mails.ts";
import { leaseMs, pollEveryMs, tellAgain } from "./tell-again.ts";

/** Dependencies for notifying people. */
export interface NoticeOptions {
  readonly database: Database;
  readonly vault: Vault;
  readonly logger: Logger;
  readonly publicUrl: () => string;
  /** Null: no mail is sent. */
  readonly mail: MailSettings | null;
  readonly pushKeys: () => Promise<PushKeys>;
  /** The address by which a person ends one kind of mail. */
  readonly unsubscribeUrl: (userId: string, kind: string) => Promise<string>;
  /** Hosts in private networks that the operator allows to be written to. */
  readonly privateHosts: readonly string[];
  readonly proxies?: Proxies;
}

/** Mails under way, each on its own connection: none waits for another while its lease runs. */
const mailsAtOnce = 2;
/** With the two for notices these are three connections, which is what some mail services allow one sender. */
const invitationsAtOnce = 1;
const pushesAtOnce = 16;
/** Of pushes, and of what is under way when this server stops. */
const timeLimitMs = 15_000;
/** How long a push service keeps a notice for a browser that is off. */
const ttlSeconds = 24 * 3_600;

/**
 * Makes the task that notifies people: it decides whom the newest changes concern, and sends to each by the channels
 * that they chose. Each delivery is sent once, and repeated only if it is not known whether it was sent: with the same
 * id, by which mail programs and browsers recognize it. Any number of workers may run it. If there is a mail server, it
 * mails invitations, too.
 */
export function createNotices(options: NoticeOptions): Service {
  const { database, logger, mail } = options;
  const channels: ReadonlySet<NoticeChannel> = new Set(mail === null ? ["push"] : ["push", "email"]);
  const mailer = mail === null ? null : createMailer(mail, { connections: mailsAtOnce });
  // A separate mailer: a person who invites often waits for the mail, and notices and invitations must not delay each
  // other.
  const invitationMailer = mail === null ? null : createMailer(mail, { connections: invitationsAtOnce });
  const loopOf = (
    channel: NoticeChannel,
    atOnce: number,
    work: (notice: ClaimedNotice, hurry: AbortSignal) => Delivered,
  ) =>
    createClaimLoop<ClaimedNotice>({
      atOnce,
      everyMs: pollEveryMs,
      claim: (underWay) => claimNotices(database, channel, { limit: Math.min(4, atOnce - underWay.length), leaseMs }),
      async work(notice, hurry) {
        const outcome = await work(notice, hurry);
        // This server stops before an answer came: the delivery is due again when its lease expires.
        if (outcome !== null) await finishNotice(database, notice, outcome);
      },
      graceMs: timeLimitMs,
      onClaimFailure: (error) => logger.warn({ err: error }, "could not claim notices; will retry"),
      onWorkFailure: (error, { id }) => logger.warn({ err: error, noticeId: id }, "could not tell a notice"),
    });
  const pushes = loopOf("push", pushesAtOnce, (notice, hurry) =>
    push(options, notice, wordsOf(options, notice), hurry),
  );
  const mails = loopOf("email", mailsAtOnce, (notice, hurry) =>
    write(options, mailer, notice, wordsOf(options, notice), hurry),
  );
  const decisions = createPeriodic({
    everyMs: pollEveryMs,
    pass: async (stopping) => {
      while (!stopping.aborted) {
        if ((await fanOutNotices(database, channels)) === 0) return;
        pushes.now();
        mails.now();
      }
    },
    onFailure: (error) => logger.warn({ err: error }, "could not decide whom notices concern; will retry"),
  });
  const closing: Service = {
    start: () => Promise.resolve(),
    stop() {
      mailer?.close();
      invitationMailer?.close();
      return Promise.resolve();
    },
  };
  const invitations =
    invitationMailer === null
      ? []
      : [
          createInvitationMails({
            ...options,
            mailer: invitationMailer,
            atOnce: invitationsAtOnce,
            graceMs: timeLimitMs,
          }),
        ];
  const senders = [pushes, mails, ...invitations];
  const sending: Service = {
    start: async () => void (await allSettled(senders.map((sender) => sender.start()))),
    // At once: what is under way in each has the same time to end.
    stop: async () => void (await allSettled(senders.map((sender) => sender.stop()))),
  };
  return joinServices([closing, sending, decisions]);
}

/** The outcome of a delivery; null if unknown. */
type Delivered = Promise<TellingOutcome | null>;

function wordsOf({ publicUrl }: NoticeOptions, { kind, data, sessionTitle }: ClaimedNotice): NoticeWords {
  return noticeWords(kind, data, { publicUrl: publicUrl(), sessionTitle });
}

async function write(
  { publicUrl, unsubscribeUrl }: NoticeOptions,
  mailer: Mailer | null,
  notice: ClaimedNotice,
  words: NoticeWords,
  hurry: AbortSignal,
): Delivered {
  if (mailer === null) return { status: "dead", problem: "this worker has no mail server" };
  if (notice.email === null) return { status: "dead", problem: "the person has no address any more" };
  const result = await mailer.send(
    {
      id: notice.id,
      to: { name: notice.name, address: notice.email },
      subject: words.title,
      ...mailBodies(words, `${publicUrl()}/settings`),
      unsubscribeUrl: await unsubscribeUrl(notice.userId, notice.kind),
    },
    hurry,
  );
  if (result.status === "sent") return { status: "sent" };
  if (result.passing && hurry.aborted) return null;
  return result.passing ? tellAgain(notice, result.words, null) : { status: "dead", problem: result.words };
}

async function push(options: NoticeOptions, notice: ClaimedNotice, words: NoticeWords, hurry: AbortSignal): Delivered {
  const { database, vault, privateHosts, proxies, pushKeys, publicUrl, mail } = options;
  const { id, subscription } = notice;
  if (subscription === null) return { status: "dead", problem: "the browser's subscription is gone" };
  let request: Awaited<ReturnType<typeof createPushRequest>>;
  try {
    const target = await openSubscription(vault, subscription.id, subscription);
    request = await createPushRequest(target, await pushKeys(), {
      payload: { id, ...words },
      contact: contactOf(mail, publicUrl()),
      ttlSeconds,
      // At most 32 characters of base64url (RFC 8030, 5.4).
      topic: Buffer.from(words.tag).toString("base64url").slice(-32),
    });
  } catch (error) {
    return { status: "dead", problem: messageOf(error) };
  }
  const posted = await postTo(request.url, {
    body: request.body,
    headers: request.headers,
    privateHosts,
    ...(proxies !== undefined && { proxies }),
    signal: AbortSignal.any([hurry, AbortSignal.timeout(timeLimitMs)]),
  });
  const { status, error, retryAfterMs } = posted;
  if (status === null && hurry.aborted) return null;
  if (error === null) return { status: "sent" };
  if (status === 404 || status === 410) {
    await dropSubscription(database, subscription.id);
    return null;
  }
  const isPassing = status === null || status === 429 || status >= 500;
  return isPassing ? tellAgain(notice, error, retryAfterMs) : { status: "dead", problem: error };
}

/** The contact for a push service if something is wrong with this installation's messages. */
function contactOf(mail: MailSettings | null, publicUrl: string): string {
  const address = mail === null ? undefined : /[^\s<>]+@[^\s<>]+/u.exec(mail.from)?.[0];
  return address === undefined ? publicUrl : `mailto:${address}`;
}
