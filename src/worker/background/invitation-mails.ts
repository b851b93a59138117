import type { Mailer } from "../../channels/mail.ts";
import type { Database } from "../../database/database.ts";
import { messageOf } from "../../domain/errors/errors.ts";
import { invitationMail } from "../../domain/people/invitation-mail.ts";
import { createClaimLoop } from "../../lifecycle/claim-loop.ts";
import type { Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import {
  claimInvitationMails,
  finishInvitationMail,
  type ClaimedInvitationMail,
} from "../../store/people/invitation-mails.ts";
import type { Vault } from "../../store/secrets/vault.ts";
import type { TellingOutcome } from "../../store/telling-outcome.ts";
import { leaseMs, pollEveryMs, tellAgain } from "./tell-again.ts";

/** Dependencies for mailing invitations. */
export interface InvitationMailOptions {
  readonly database: Database;
  readonly vault: Vault;
  readonly logger: Logger;
  readonly publicUrl: () => string;
  readonly mailer: Mailer;
  /** How many mails are sent at once: few enough that none waits in the mailer until its lease runs out. */
  readonly atOnce: number;
  /** How long a mail under way may take once the task is to stop, in ms. */
  readonly graceMs: number;
}

/**
 * Makes the task that mails the links of invitations, each once. As with notices, a mail is repeated with the same id
 * if it is not known whether it was sent.
 */
export function createInvitationMails(options: InvitationMailOptions): Service {
  const { database, logger, atOnce, graceMs } = options;
  return createClaimLoop<ClaimedInvitationMail>({
    atOnce,
    everyMs: pollEveryMs,
    claim: (underWay) => claimInvitationMails(database, { limit: atOnce - underWay.length, leaseMs }),
    async work(mail, hurry) {
      const outcome = await send(options, mail, hurry);
      if (outcome !== null) await finishInvitationMail(database, mail, outcome);
    },
    graceMs,
    onClaimFailure: (error) => logger.warn({ err: error }, "could not claim invitations to mail; will retry"),
    onWorkFailure: (error, { id }) => logger.warn({ err: error, mailId: id }, "could not mail an invitation"),
  });
}

async function send(
  { vault, publicUrl, mailer }: InvitationMailOptions,
  mail: ClaimedInvitationMail,
  hurry: AbortSignal,
): Promise<TellingOutcome | null> {
  const { id, name, email, language, expiresAt } = mail;
  let token: string;
  try {
    token = await vault.open(id, mail);
  } catch (error) {
    return { status: "dead", problem: messageOf(error) };
  }
  const written = invitationMail(language, { publicUrl: publicUrl(), token, expiresAt });
  const result = await mailer.send({ id, to: { name, address: email }, ...written, unsubscribeUrl: null }, hurry);
  if (result.status === "sent") return { status: "sent" };
  // This server stops before an answer came: the mail is due again when its lease expires.
  if (result.passing && hurry.aborted) return null;
  // A filter may say which address of the text it dislikes, and that one is a credential.
  const problem = result.words.replaceAll(token, "…");
  return result.passing ? tellAgain(mail, problem, null) : { status: "dead", problem };
}
