import { memo } from "react";
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
  // The page has its own h1 and h2.
  h1: ({ children }) => <h3>{children}</h3>,
  h2: ({ children }) => <h4>{children}</h4>,
};

const plugins = [remarkGfm];

/** What a model or a person wrote, as Markdown; HTML in it is text. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return (
    <div className="prose">
      <ReactMarkdown remarkPlugins={plugins} components={components}>
        {text}
      </ReactMarkdown>
    </div>
  );
});
