import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef } from "react";
import { CopyButton } from "../../elements/copy-button.tsx";
import { ansiHtml, chunksOf, type OutputChunk } from "./ansi.ts";

/** Output that is longer is drawn only where it is in sight, and not wrapped: each of its lines has the same height then. */
const longest = { lines: 1_000, characters: 200_000 };
/** Height of a line in pixels: that of the class `leading-[18px]`. */
const lineHeight = 18;

/**
 * A tool call's input or output, as in a terminal, with its colours. @param what its name in a sentence, for the button
 * that copies it
 */
export function Output({ label, what, text }: { label: string; what: string; text: string }) {
  const chunks = useMemo(() => chunksOf(text), [text]);
  const lines = chunks.reduce((sum, chunk) => sum + chunk.lines, 0);
  const isLong = lines > longest.lines || text.length > longest.characters;
  return (
    <figure className="group/output relative">
      <figcaption className="sr-only">{label}</figcaption>
      {isLong ? (
        <LongOutput label={label} chunks={chunks} />
      ) : (
        <pre
          tabIndex={0}
          aria-label={label}
          className="max-h-96 overflow-auto rounded-md bg-sunken p-2 font-mono text-xs leading-[18px] break-words whitespace-pre-wrap"
          dangerouslySetInnerHTML={{ __html: ansiHtml(text) }}
        />
      )}
      <div className="absolute end-1.5 top-1.5 opacity-0 group-focus-within/output:opacity-100 group-hover/output:opacity-100 pointer-coarse:opacity-100">
        <CopyButton text={text} what={what} className="button min-h-6 px-1.5 text-xs" />
      </div>
    </figure>
  );
}

function LongOutput({ label, chunks }: { label: string; chunks: readonly OutputChunk[] }) {
  const frame = useRef<HTMLPreElement>(null);
  const virtualizer = useVirtualizer({
    count: chunks.length,
    getScrollElement: () => frame.current,
    estimateSize: (index) => (chunks[index]?.lines ?? 0) * lineHeight,
    overscan: 1,
    // Errors are at the end.
    initialOffset: chunks.reduce((sum, chunk) => sum + chunk.lines, 0) * lineHeight,
  });
  return (
    <pre
      ref={frame}
      tabIndex={0}
      aria-label={label}
      className="h-96 overflow-auto rounded-md bg-sunken font-mono text-xs leading-[18px] whitespace-pre"
    >
      <span className="relative block" style={{ height: virtualizer.getTotalSize() }}>
        {virtualizer.getVirtualItems().map(({ index, start }) => (
          <Chunk key={index} chunk={chunks[index]} start={start} />
        ))}
      </span>
    </pre>
  );
}

function Chunk({ chunk, start }: { chunk: OutputChunk | undefined; start: number }) {
  const html = useMemo(() => ansiHtml(chunk?.text ?? ""), [chunk]);
  return (
    <span
      className="absolute start-0 top-0 block px-2"
      style={{ transform: `translateY(${start}px)` }}
      dangerouslySetInnerHTML={{ __html: html }}
    />
  );
}
