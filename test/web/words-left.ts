import type { Page } from "playwright-core";

/** Texts of a part of the app, in one language. */
type Texts = Readonly<Record<string, unknown>>;

/** Stands for what a text is made with. */
const blank = "\u0001";

/** Each form of a text: one that is made with a number has others for 0 and 1. */
function formsOf(text: unknown): string[] {
  if (typeof text === "string") return [text];
  if (typeof text !== "function") return [];
  const make = text as (...given: readonly unknown[]) => string;
  const forms = [0, 1, blank].map((given) => make(...Array.from({ length: make.length }, () => given)));
  return [...new Set(forms.map((form) => form.replaceAll(/\b[01]\b/gu, blank)))];
}

/**
 * What finds the words of English that another language has other words for: they must not be seen in that language. A single word is
 * found where it is all that an element says, since the server's sentences, which are English, may have it; several are found anywhere.
 * @param english and `other`: the same texts in both
 */
export function foreignWords(english: Texts, other: Texts): RegExp[] {
  const own = new Set<string>();
  const foreign = new Set<string>();
  const walk = (one: unknown, same: unknown): void => {
    if (typeof one === "object" && one !== null) {
      for (const [name, value] of Object.entries(one)) walk(value, (same as Texts)[name]);
      return;
    }
    for (const form of formsOf(one)) foreign.add(trimmed(form));
    for (const form of formsOf(same)) own.add(trimmed(form));
  };
  walk(english, other);
  return [...foreign].filter((form) => !own.has(form)).map(finderOf);
}

function finderOf(form: string): RegExp {
  const words = form.split(blank).map((part) => part.replaceAll(/[$()*+.?[\\\]^{|}]/gu, String.raw`\$&`));
  const isSingle = (form.match(/\p{L}+/gu) ?? []).length < 2;
  return new RegExp(isSingle ? `^${words.join(".+")}$` : words.join(".+"), "u");
}

/** Without blanks and marks around it. */
function trimmed(text: string): string {
  return text.replaceAll(/^[\s,;:.]+|[\s,;:.]+$/gu, "");
}

/** In the page: everything that people read or hear, but for code and for what the server says, which is English. */
const readAll = `() => {
  const left = "pre, code, textarea, script, style, [role=alert], ul[aria-label^='Was fehlt'] > li";
  const found = document.title.split(" · ");
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { parentElement: around, data } = texts.currentNode;
    if (around.closest(left) === null) found.push(...data.split(" · "));
  }
  for (const element of document.querySelectorAll("body *")) {
    for (const name of ["aria-label", "title", "placeholder", "label"]) found.push(element.getAttribute(name) ?? "");
  }
  return found;
}`;

/** Which of these words stand on the page as it is. */
export async function wordsLeft(page: Page, words: readonly RegExp[]): Promise<string[]> {
  const read = await page.evaluate<string[]>(`(${readAll})()`);
  const shown = read.map((text) => trimmed(text));
  return shown.filter((text) => text !== "" && words.some((each) => each.test(text)));
}
