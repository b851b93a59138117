import { Parser } from "htmlparser2";
import { mentionOf } from "./mentioned-name.ts";

/**
 * A text that was written in Bitbucket Cloud's editor, with the names of those whom it mentions: the editor writes `@{account id}`, and
 * only the HTML form of the text says whose that is. An id without a name in it stays as it is.
 * @param raw as it was written
 * @param html as Bitbucket shows it
 */
export function withNamesOf(raw: string, html: string): string {
  if (!raw.includes("@{")) return raw;
  const names = namesIn(html);
  return raw.replaceAll(/@\{([\w:.-]{1,200})\}/gu, (mention, id: string) => names.get(id) ?? mention);
}

function namesIn(html: string): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  /** The mention whose name is being read; null: none is. */
  let mention: { readonly id: string; name: string } | null = null;
  const parser = new Parser({
    onopentag(element, { class: classes = "", "data-atlassian-id": id = "" }) {
      if (element === "span" && id !== "" && classes.split(" ").includes("ap-mention")) mention = { id, name: "" };
    },
    ontext(text) {
      if (mention !== null && mention.name.length < 200) mention.name += text;
    },
    onclosetag() {
      const shown = mention?.name.trim() ?? "";
      const name = shown.startsWith("@") ? mentionOf(shown.slice(1)) : null;
      if (mention !== null && name !== null) names.set(mention.id, name);
      mention = null;
    },
  });
  parser.end(html);
  return names;
}
