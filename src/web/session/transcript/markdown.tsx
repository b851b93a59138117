import { lazy, Suspense } from "react";

const MarkdownView = lazy(() =>
  import("./markdown-view.tsx").then(({ MarkdownView: component }) => ({ default: component })),
);

/** Markdown; shown as plain text until the renderer is loaded. */
export function Markdown({ text }: { text: string }) {
  return (
    <Suspense fallback={<p className="whitespace-pre-wrap">{text}</p>}>
      <MarkdownView text={text} />
    </Suspense>
  );
}
