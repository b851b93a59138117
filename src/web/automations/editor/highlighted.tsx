import { memo, useMemo, type RefObject } from "react";
import type { Token, Tokenizer, TokenKind } from "./token.ts";

/** A part of a text. */
export interface Place {
  readonly from: number;
  readonly until: number;
}

/** Colours alone: another weight or slant would have other widths than the text area. */
const looks: Readonly<Record<TokenKind, string>> = {
  text: "",
  mark: "text-merged",
  keyword: "text-merged",
  name: "text-accent",
  literal: "text-good",
  call: "text-warn",
  comment: "text-muted",
};

/** A text in the colours of its language, for eyes alone: the text area over it has the text for everything else. */
export const Highlighted = memo(function Highlighted({
  layer,
  className,
  tokens,
  text,
  problemAt,
}: {
  readonly layer: RefObject<HTMLPreElement | null>;
  readonly className: string;
  readonly tokens: Tokenizer;
  readonly text: string;
  readonly problemAt: Place | null;
}) {
  const all = useMemo(() => tokens(text), [tokens, text]);
  let at = 0;
  const shown = all.map((token, index) => {
    const from = at;
    at += token.text.length;
    const look = `${looks[token.kind]} ${problemAt !== null && overlaps(problemAt, from, at) ? "underline decoration-bad decoration-wavy underline-offset-4" : ""}`;
    // oxlint-disable-next-line react/no-array-index-key -- a token is nothing but its place
    return look.trim() === "" ? token.text : <Piece key={index} token={token} look={look} />;
  });
  return (
    <pre
      ref={layer}
      aria-hidden
      dir="auto"
      className={`${className} pointer-events-none select-none forced-colors:invisible`}
    >
      {shown}
      {/* An empty last line has a height in a text area alone. */}
      {"\n"}
    </pre>
  );
});

function Piece({ token: { text }, look }: { readonly token: Token; readonly look: string }) {
  return <span className={look}>{text}</span>;
}

function overlaps({ from, until }: Place, start: number, end: number): boolean {
  return start < until && from < end;
}
