import { memo, useMemo, type RefObject } from "react";
import type { Place } from "./problem-place.ts";
import type { Token, Tokenizer, TokenKind } from "./token.ts";

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

const wrong = "underline decoration-bad decoration-wavy underline-offset-4";

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
  const lines = useMemo(() => linesOf(tokens(text)), [tokens, text]);
  return (
    <pre
      ref={layer}
      aria-hidden
      dir="auto"
      className={`${className} pointer-events-none select-none forced-colors:invisible`}
    >
      {lines.map((line, index) => (
        // oxlint-disable-next-line react/no-array-index-key -- a line is nothing but its place
        <div key={index} className="[unicode-bidi:plaintext]">
          {line.map(({ kind, text: piece, from }) => {
            const isWrong = problemAt !== null && from < problemAt.until && problemAt.from < from + piece.length;
            const look = `${looks[kind]} ${isWrong ? wrong : ""}`.trim();
            return look === "" ? (
              piece
            ) : (
              <span key={from} className={look}>
                {piece}
              </span>
            );
          })}
          {"\n"}
        </div>
      ))}
    </pre>
  );
});

/** A piece of a line, and where in the text it begins. */
interface Piece extends Token {
  readonly from: number;
}

/**
 * The pieces of each line, without what ends it. Each line is a block: browsers mirror brackets wrongly if one block
 * has lines of two directions with elements in them.
 */
function linesOf(tokens: readonly Token[]): Piece[][] {
  let line: Piece[] = [];
  const lines = [line];
  let from = 0;
  for (const { kind, text } of tokens) {
    for (const [index, piece] of text.split("\n").entries()) {
      if (index > 0) {
        line = [];
        lines.push(line);
        from += 1;
      }
      if (piece !== "") line.push({ kind, text: piece, from });
      from += piece.length;
    }
  }
  return lines;
}
