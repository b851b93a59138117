import { memo, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";

const components: Components = {
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  ),
  // A picture from elsewhere would tell its server who reads this page.
  img: ({ src, alt }) => (
    <a href={typeof src === "string" ? src : undefined} target="_blank" rel="noreferrer noopener">
      {alt === undefined || alt === "" ? "image" : alt}
    </a>
  ),
  // A region that scrolls must be reachable by keyboard.
  pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
  table: ({ children }) => <table tabIndex={0}>{children}</table>,
  ...Object.fromEntries(["h1", "h2", "h3", "h4", "h5", "h6"].map((tag) => [tag, Heading])),
};

/** A message's headings are no part of the page's outline, whose levels they would skip. */
function Heading({ children }: { children?: ReactNode }) {
  return <p className="font-semibold">{children}</p>;
}

const plugins = [remarkGfm];

/** What a model or a person wrote, as Markdown; HTML in it is text. */
export const MarkdownView = memo(function MarkdownView({ text }: { text: string }) {
  return (
    <div className="prose">
      <ReactMarkdown remarkPlugins={plugins} components={components}>
        {text}
      </ReactMarkdown>
    </div>
  );
});
