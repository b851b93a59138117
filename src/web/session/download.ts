import type { SessionDetail, SessionDiff } from "../../domain/sessions/session.ts";
import type { SessionTexts } from "../texts/session.ts";
import { noteText } from "./transcript/notes.tsx";
import type { Item } from "./view/view.ts";

/** Has the browser save a text as a file. */
export function download(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // Once the browser has begun to read it.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** The patches of all repositories, as `git apply` takes them for one; each after a comment that names its repository. */
export function patchOf({ repositories }: SessionDiff): string {
  const changed = repositories.filter(({ patch }) => patch !== "");
  const [only] = changed;
  if (changed.length === 1) return only?.patch ?? "";
  return changed.map(({ name, patch }) => `# ${name}\n${patch}`).join("\n");
}

/** What was said and done, as Markdown. */
export function transcriptOf(session: SessionDetail, items: readonly Item[], texts: SessionTexts): string {
  const head = `# ${session.title}\n\n${session.htmlUrl}`;
  return `${[head, ...items.flatMap((item) => partOf(item, texts))].join("\n\n")}\n`;
}

function partOf(item: Item, texts: SessionTexts): string[] {
  switch (item.kind) {
    case "user":
      return [`## ${texts.transcript.youAsked} (${item.at})`, item.text];
    case "message":
      return [item.text];
    case "thought":
      return [item.text.replaceAll(/^/gmu, "> ")];
    case "tool": {
      const outputs = item.tool.content.map((content) =>
        content.type === "text" ? fenced(content.text) : fenced(content.newText),
      );
      return [`- \`${item.tool.title}\` (${texts.tools.states[item.tool.status]})`, ...outputs];
    }
    case "refused":
      return [`- ${texts.refused.refused} \`${item.host}:${item.port}\``];
    case "note": {
      const subject = item.note.type === "commit" ? `: ${item.note.subject}` : "";
      return [`- ${noteText(item.note, texts.notes)}${subject}`];
    }
  }
}

/** A code block, with a fence that the text does not have. */
function fenced(text: string): string {
  const longest = Math.max(0, ...[...text.matchAll(/`{3,}/gu)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(Math.max(3, longest + 1));
  return `${fence}\n${text.replace(/\n$/u, "")}\n${fence}`;
}
