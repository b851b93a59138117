import { lazy, Suspense } from "react";

const MarkdownView = lazy(() =>
  import("./markdown-view.tsx").then(({ MarkdownView: component }) => ({ default: component })),
);

/** Markdown; plain text until the part of the app that reads it is here. */
export function Markdown({ text }: { text: string }) {
  return (
    <Suspense fallback={<p className="whitespace-pre-wrap">{text}</p>}>
      <MarkdownView text={text} />
    </Suspense>
  );
}
