import { createTransport } from "nodemailer";

/** The operator's mail server, and who writes. */
export interface MailSettings {
  readonly host: string;
  readonly port: number;
  /** `always`: TLS from the first byte; `startTls`: before anything is said; `none`: the operator allows it in the clear. */
  readonly tls: "always" | "startTls" | "none";
  readonly user: string | null;
  readonly password: string | null;
  /** `Name <address>`, or an address. */
  readonly from: string;
}

/** A mail to one person. */
export interface Mail {
  /** The same each time that the same mail is sent, by which a receiver knows it again. */
  readonly id: string;
  readonly to: { readonly name: string; readonly address: string };
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  /** Takes a POST of `List-Unsubscribe=One-Click` (RFC 8058); null: it is no mail of which there will be more. */
  readonly unsubscribeUrl: string | null;
}

/** A mail server's answer. */
export type MailResult =
  | { readonly status: "sent" }
  /** @property passing whether it may take the mail later: no answer, or a code from 400 to 499 (RFC 5321, 4.2.1) */
  | { readonly status: "refused"; readonly passing: boolean; readonly words: string };

/** Sends mail by one server, over connections that are kept. */
export interface Mailer {
  /**
   * Never throws: errors are in the result.
   * @param hurry once it aborts, no answer is waited for any more
   */
  send(mail: Mail, hurry?: AbortSignal): Promise<MailResult>;
  close(): void;
}

/** Nodemailer's fields of an error: its command, and the server's answer. */
interface Refusal {
  readonly code: string;
  readonly responseCode: number;
}

/** A step of a mail in which the server says nothing. */
const silenceMs = 20_000;
/** A whole mail, also if the server says something again and again. */
const mailMs = 60_000;

/**
 * Makes a mailer. It connects when there is something to send.
 * @param connections so many mails are sent at once; further ones wait
 * @param timeLimitMs for each mail, its wait included
 */
export function createMailer(
  { host, port, tls, user, password, from }: MailSettings,
  { connections, timeLimitMs = mailMs }: { readonly connections: number; readonly timeLimitMs?: number },
): Mailer {
  const transport = createTransport({
    host,
    port,
    secure: tls === "always",
    requireTLS: tls === "startTls",
    ignoreTLS: tls === "none",
    tls: { minVersion: "TLSv1.2" },
    ...(user !== null && { auth: { user, pass: password ?? "" } }),
    pool: true,
    maxConnections: connections,
    connectionTimeout: silenceMs,
    greetingTimeout: silenceMs,
    socketTimeout: silenceMs,
    // A text of a mail is never read as the name of a file or an address to load.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    async send({ id, to, subject, text, html, unsubscribeUrl }, hurry) {
      const tooLong = AbortSignal.timeout(timeLimitMs);
      try {
        await transport.sendMail({
          signal: hurry === undefined ? tooLong : AbortSignal.any([tooLong, hurry]),
          messageId: `<${id}@offstage>`,
          from,
          to,
          subject,
          text,
          html,
          headers: {
            // No answer of a machine to a machine (RFC 3834).
            "Auto-Submitted": "auto-generated",
            ...(unsubscribeUrl !== null && {
              "List-Unsubscribe": `<${unsubscribeUrl}>`,
              "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
            }),
          },
        });
        return { status: "sent" };
      } catch (error) {
        const { code, responseCode, message } = error as Partial<Refusal> & { readonly message: string };
        // A refusal of the connection or the login is not about this mail.
        const isFinal =
          (code === "EENVELOPE" || code === "EMESSAGE") && responseCode !== undefined && responseCode >= 500;
        const words =
          code === "EABORT" && tooLong.aborted
            ? `The mail server did not take the mail within ${timeLimitMs / 1_000} s`
            : message.slice(0, 500);
        return { status: "refused", passing: !isFinal, words };
      }
    },
    close: () => transport.close(),
  };
}
