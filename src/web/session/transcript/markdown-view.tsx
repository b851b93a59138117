import { memo, useDeferredValue, type ReactNode } from "react";
import ReactMarkdown, { type Components, type ExtraProps } from "react-markdown";
import remarkGfm from "remark-gfm";
import { CopyButton } from "../../elements/copy-button.tsx";
import { useSessionTexts } from "../../texts/session.ts";

const components: Components = {
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  ),
  // No images of other servers: loading them would reveal the reader.
  img: Picture,
  // A region that scrolls must be reachable by keyboard.
  pre: Code,
  table: ({ children }) => <table tabIndex={0}>{children}</table>,
  ...Object.fromEntries(["h1", "h2", "h3", "h4", "h5", "h6"].map((tag) => [tag, Heading])),
};

function Picture({ src, alt = "" }: { src?: string | Blob | undefined; alt?: string | undefined }) {
  const { image } = useSessionTexts().transcript;
  return (
    <a href={typeof src === "string" ? src : undefined} target="_blank" rel="noreferrer noopener">
      {alt === "" ? image : alt}
    </a>
  );
}

function Code({ node, children }: { node?: Element | undefined; children?: ReactNode }) {
  const { copyCode } = useSessionTexts().transcript;
  return (
    <div className="group relative">
      <pre tabIndex={0}>{children}</pre>
      <CopyButton
        text={textOf(node)}
        what={copyCode}
        className="button absolute end-1.5 top-1.5 min-h-7 px-2 text-xs opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 pointer-coarse:opacity-100"
      />
    </div>
  );
}

type Element = NonNullable<ExtraProps["node"]>;

function textOf(node: Element | Element["children"][number] | undefined): string {
  if (node === undefined) return "";
  if (node.type === "text") return node.value;
  return "children" in node ? node.children.map(textOf).join("") : "";
}

/** Not a real heading: a message's headings would break the outline of the page. */
function Heading({ children }: { children?: ReactNode }) {
  return <p className="font-semibold">{children}</p>;
}

const plugins = [remarkGfm];

/** Text of a model or a person as Markdown; HTML in it is shown as text. What grows while it is read is drawn when there is time. */
export const MarkdownView = memo(function MarkdownView({ text }: { text: string }) {
  return <Drawn text={useDeferredValue(text)} />;
});

const Drawn = memo(function Drawn({ text }: { text: string }) {
  return (
    <div dir="auto" className="prose">
      <ReactMarkdown remarkPlugins={plugins} components={components}>
        {text}
      </ReactMarkdown>
    </div>
  );
});
