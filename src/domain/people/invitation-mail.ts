import { layOutMail } from "../notices/words.ts";
import type { InvitationLanguage } from "./invitation.ts";

interface Words {
  readonly title: string;
  readonly text: (host: string, until: string) => string;
  readonly open: string;
  readonly footer: string;
}

const wordsOf: Readonly<Record<InvitationLanguage, Words>> = {
  en: {
    title: "You are invited to Offstage",
    text: (host, until) =>
      `You may use Offstage at ${host}, which has coding agents work on your repositories. This link signs one browser in as you, once, until ${until}. Give it to nobody.`,
    open: "Sign in to Offstage",
    footer: "If you did not expect this mail, do nothing: the link ends by itself.",
  },
  de: {
    title: "Du bist zu Offstage eingeladen",
    text: (host, until) =>
      `Du kannst Offstage unter ${host} benutzen: Dort arbeiten Coding-Agenten an euren Repositories. Dieser Link meldet einen Browser als dich an, einmal, bis ${until}. Gib ihn niemandem.`,
    open: "Bei Offstage anmelden",
    footer: "Wenn du diese E-Mail nicht erwartet hast, tu nichts: Der Link endet von selbst.",
  },
};

/**
 * The mail with the link of an invitation. Programs that look into mails follow links and run their pages, which must not use this one
 * up: so the page asks before it signs in.
 */
export function invitationMail(
  language: InvitationLanguage,
  { publicUrl, token, expiresAt }: { readonly publicUrl: string; readonly token: string; readonly expiresAt: Date },
): { subject: string; text: string; html: string } {
  const { title, text, open, footer } = wordsOf[language];
  const until = new Intl.DateTimeFormat(language, { dateStyle: "long", timeZone: "UTC" }).format(expiresAt);
  const url = `${publicUrl}/sign-in?invited=true#${token}`;
  const bodies = layOutMail({ language, title, text: text(new URL(publicUrl).host, until), url, open, footer });
  return { subject: title, ...bodies };
}
