import { addToken, type Token, type TokenKind } from "./token.ts";

const words = new Set(["true", "false", "null", "in"]);
/** An unclosed quote ends with its line; three of them with the text. */
const pieces =
  /(?<comment>\/\/[^\n]*)|(?<literal>[rRbB]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)|0x[\dA-Fa-f]+u?|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?u?)|(?<call>[A-Za-z_]\w*(?=\s*\())|(?<word>[A-Za-z_]\w*)|(?<other>[^\p{ASCII}]+|[\s\S])/uy;

type Groups = Readonly<Record<"comment" | "literal" | "call" | "word", string | undefined>>;

/** The tokens of a condition in CEL. It need not be right: it is being written. */
export function celTokens(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    pieces.lastIndex = at;
    const { comment, literal, call, word, other } = pieces.exec(text)?.groups ?? {};
    const piece = comment ?? literal ?? call ?? word ?? other ?? "";
    addToken(tokens, kindOf({ comment, literal, call, word }), piece);
    at += piece.length;
  }
  return tokens;
}

function kindOf({ comment, literal, call, word }: Groups): TokenKind {
  if (comment !== undefined) return "comment";
  if (literal !== undefined) return "literal";
  if (call !== undefined) return call === "in" ? "keyword" : "call";
  if (word === undefined) return "text";
  return words.has(word) ? "keyword" : "name";
}
