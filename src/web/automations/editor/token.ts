/** How a piece of a template or a condition is coloured; `text` is not. */
export type TokenKind = "text" | "mark" | "keyword" | "name" | "literal" | "call" | "comment";

/** A piece of a text. All of them together are the text, whatever it is. */
export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

/** Splits a text into its tokens. */
export type Tokenizer = (text: string) => Token[];

/** Adds a piece to its like before it, so that there are few. */
export function addToken(tokens: Token[], kind: TokenKind, text: string): void {
  if (text === "") return;
  const before = tokens.at(-1);
  if (before?.kind === kind) tokens[tokens.length - 1] = { kind, text: before.text + text };
  else tokens.push({ kind, text });
}
