import { cutAtWord } from "../fields/text.ts";
import type { NoticeKind } from "./notice.ts";

/** The text of a notice: short enough for a lock screen, with the page that shows the rest. */
export interface NoticeWords {
  readonly title: string;
  readonly text: string;
  /** Address of the page in the web app. */
  readonly url: string;
  /** Two notices with the same one are about the same thing: a browser shows the newer. */
  readonly tag: string;
}

/** The facts of a notice's change; fields that a kind does not have are absent. */
export interface NoticeFacts {
  readonly id?: unknown;
  readonly sessionId?: unknown;
  readonly title?: unknown;
  readonly name?: unknown;
  readonly macro?: unknown;
  readonly number?: unknown;
  readonly reason?: unknown;
  readonly failure?: unknown;
}

const titleLength = 100;
const textLength = 300;

/**
 * The words of a notice.
 * @param kind `test`: a person tries their channels
 * @param sessionTitle title of the session that it is about; null: none
 */
export function noticeWords(
  kind: NoticeKind | "test",
  facts: NoticeFacts,
  { publicUrl, sessionTitle }: { readonly publicUrl: string; readonly sessionTitle: string | null },
): NoticeWords {
  const session = textOf(facts.sessionId ?? facts.id);
  const about = sessionTitle ?? textOf(facts.title);
  const ofSession = (title: string, text: string): NoticeWords => ({
    title: cutAtWord(oneLine(title), titleLength),
    text: cutAtWord(oneLine(text), textLength),
    url: `${publicUrl}/sessions/${session}`,
    tag: `session-${session}`,
  });
  const ofAutomation = (what: string): NoticeWords => ({
    title: cutAtWord(oneLine(`${what}: ${textOf(facts.name)}`), titleLength),
    text: cutAtWord(oneLine(textOf(facts.reason)), textLength),
    url: `${publicUrl}/automations/${textOf(facts.id)}`,
    tag: `automation-${textOf(facts.id)}`,
  });
  const pull = `Pull request #${textOf(facts.number)}`;
  switch (kind) {
    case "session.completed":
      return ofSession(`Completed: ${about}`, "The session is completed.");
    case "session.failed":
      return ofSession(`Failed: ${about}`, reasonOf(facts.failure) ?? "The session failed.");
    case "session.waiting":
      return ofSession(`Waits for a budget: ${about}`, "An admin can raise it on the session's page.");
    case "pullRequest.opened":
      return ofSession(`${pull} waits for review`, about);
    case "pullRequest.conflicted":
      return ofSession(`${pull} has conflicts`, about);
    case "pullRequest.merged":
      return ofSession(`${pull} was merged`, about);
    case "automation.paused":
      return ofAutomation("Automation paused");
    case "automation.silent":
      return ofAutomation("Automation silent");
    case "test":
      return {
        title: "Offstage can reach you",
        text: "This is the notice that you asked for.",
        url: `${publicUrl}/settings`,
        tag: "test",
      };
  }
}

function reasonOf(failure: unknown): string | null {
  const { reason } = (failure ?? {}) as { readonly reason?: unknown };
  return typeof reason === "string" && reason !== "" ? reason : null;
}

function textOf(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

/** Without line breaks and other control characters, which would be a header's end in a mail. */
function oneLine(text: string): string {
  return text
    .slice(0, 2_000)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .trim();
}

/** The texts of a mail. */
export interface MailWords {
  readonly language: string;
  readonly title: string;
  readonly text: string;
  readonly url: string;
  /** Text of the link to it. */
  readonly open: string;
  /** Why the person gets the mail. */
  readonly footer: string;
  /** Where that can be changed. */
  readonly change?: { readonly text: string; readonly url: string };
}

/** A mail's two bodies. Nothing in them is loaded from anywhere. */
export function layOutMail({ language, title, text, url, open, footer, change }: MailWords): {
  text: string;
  html: string;
} {
  const changing = change && {
    text: ` ${change.text}: ${change.url}`,
    html: ` <a href="${escaped(change.url)}">${escaped(change.text)}</a>.`,
  };
  return {
    text: `${title}\n\n${text}\n\n${url}\n\n--\n${footer}${changing?.text ?? ""}\n`,
    html: `<!doctype html>
<html lang="${language}"><head><meta charset="utf-8"><title>${escaped(title)}</title></head>
<body style="font-family:system-ui,sans-serif;line-height:1.5;color:#222;background:#fff;max-width:38rem;margin:1rem auto;padding:0 1rem">
<h1 style="font-size:1.1rem">${escaped(title)}</h1>
<p>${escaped(text)}</p>
<p><a href="${escaped(url)}">${escaped(open)}</a></p>
<hr style="border:0;border-top:1px solid #ddd">
<p style="font-size:.85rem;color:#555">${escaped(footer)}${changing?.html ?? ""}</p>
</body></html>
`,
  };
}

/** A notice as a mail's two bodies. */
export function mailBodies({ title, text, url }: NoticeWords, settingsUrl: string): { text: string; html: string } {
  return layOutMail({
    language: "en",
    title,
    text,
    url,
    open: "Open it in Offstage",
    footer: "You get this mail because you asked to be told of it.",
    change: { text: "Change that", url: settingsUrl },
  });
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/gu, (character) => entities[character] ?? "");
}
