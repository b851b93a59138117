import { addToken, type Token, type TokenKind } from "./token.ts";

const words = new Set([
  ..."and or contains in true false nil null empty blank with limit offset reversed".split(" "),
  ..."case when if elsif else endif unless for as".split(" "),
]);
/** The inside of `{{ … }}` and `{% … %}`. An unclosed quote ends with the tag. */
const inside =
  /(?<mark>-?[%}]\})|(?<space>\s+)|(?<literal>"[^"\n]*"|'[^'\n]*'|["'](?:(?![%}]\})[^\n])*|\d+(?:\.\d+)?)|(?<word>[A-Za-z_][\w-]*)|(?<other>[^\p{ASCII}]+|[\s\S])/uy;
/** The blocks that are no template inside, and how such a block looks. */
const opaque = { comment: "comment", raw: "text" } as const;

/** The tokens of a Liquid template. It need not be right: it is being written. */
export function liquidTokens(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const opening = /\{[{%]-?/gu;
    opening.lastIndex = at;
    const open = opening.exec(text);
    addToken(tokens, "text", text.slice(at, open?.index));
    if (open === null) break;
    addToken(tokens, "mark", open[0]);
    at = readTag(text, open.index + open[0].length, open[0].startsWith("{%"), tokens);
  }
  return tokens;
}

/** Reads from behind an opening mark to behind the closing one. @returns where it ended */
function readTag(text: string, from: number, isTag: boolean, tokens: Token[]): number {
  const remark = isTag ? /^\s*#(?:(?!-?%\})[\s\S])*/u.exec(text.slice(from))?.[0] : undefined;
  if (remark !== undefined) addToken(tokens, "comment", remark);
  let at = from + (remark?.length ?? 0);
  let tag = "";
  let before = "";
  while (at < text.length) {
    inside.lastIndex = at;
    const { mark, space, literal, word, other } = inside.exec(text)?.groups ?? {};
    const piece = mark ?? space ?? literal ?? word ?? other ?? "";
    at += piece.length;
    if (mark !== undefined) {
      addToken(tokens, "mark", mark);
      return tag === "comment" || tag === "raw" ? readBlock(text, at, tag, tokens) : at;
    }
    const isFirst = isTag && word !== undefined && tag === "" && before === "";
    if (isFirst) tag = word;
    addToken(tokens, isFirst ? "keyword" : kindOf({ literal, word }, before), piece);
    if (space === undefined) before = piece;
  }
  return at;
}

type Groups = Readonly<Record<"literal" | "word", string | undefined>>;

function kindOf({ literal, word }: Groups, before: string): TokenKind {
  if (literal !== undefined) return "literal";
  if (word === undefined) return "text";
  if (before === "|") return "call";
  return before !== "." && words.has(word) ? "keyword" : "name";
}

/** Reads to the tag that ends a block without a template in it. @returns where it ended: before that tag, or at the end */
function readBlock(text: string, from: number, tag: keyof typeof opaque, tokens: Token[]): number {
  const end = text.slice(from).search(new RegExp(`\\{%-?\\s*end${tag}\\b`, "u"));
  const until = end === -1 ? text.length : from + end;
  addToken(tokens, opaque[tag], text.slice(from, until));
  return until;
}
