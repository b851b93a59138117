import { useState } from "react";
import type { Description, Operation, Parameter, Schema } from "../../description/operations.ts";
import { snippet, type ExampleLanguage } from "../../description/snippets.ts";
import { CopyButton } from "../elements/copy-button.tsx";
import { Fields } from "./schema.tsx";

/** One operation: what it takes, what it answers, and an example. */
export function OperationSection({
  operation,
  language,
  components,
}: {
  operation: Operation;
  language: ExampleLanguage;
  components: Description;
}) {
  const { id, method, path, summary, pathParameters, query, headers, body, answer, isOpen, streams } = operation;
  const example = snippet(operation, language);
  return (
    <article aria-labelledby={id} className="mt-6 border-t border-line pt-4">
      <h3 id={id} className="scroll-mt-4 font-semibold">
        <a href={`#${id}`} className="hover:underline">
          {summary}
        </a>
      </h3>
      <p className="mt-1 font-mono text-sm wrap-anywhere">
        <span className={method === "GET" ? "text-good" : "text-accent"}>{method}</span> {path}
      </p>
      {isOpen && <p className="mt-1 text-sm text-muted">It needs no key.</p>}
      {streams && (
        <p className="mt-1 text-sm text-muted">
          With <code className="font-mono">Accept: text/event-stream</code> it answers with Server-Sent Events, as they
          happen.
        </p>
      )}
      <div className="mt-3 grid gap-x-8 gap-y-4 xl:grid-cols-2">
        <div className="min-w-0 space-y-3">
          <Parameters title="In the path" parameters={pathParameters} components={components} />
          <Parameters title="In the query" parameters={query} components={components} />
          <Parameters title="Headers" parameters={headers} components={components} />
          {body !== null && (
            <Foldable title={operation.isBodyRequired ? "Body" : "Body, which may be left out"} isOpen>
              <Fields schema={body} components={components} />
            </Foldable>
          )}
          {answer === null ? (
            <p className="text-sm text-muted">It answers with a file.</p>
          ) : (
            <Foldable title="Answer">
              <Fields schema={answer} components={components} />
            </Foldable>
          )}
        </div>
        <div className="min-w-0">
          <div className="flex items-center justify-between gap-2">
            <h4 className="text-sm font-medium">Example in {language}</h4>
            <CopyButton text={example} what={`the example of ${summary}`} />
          </div>
          <pre
            tabIndex={0}
            aria-label={`Example of ${summary}`}
            className="mt-1 max-h-96 overflow-auto rounded-md border border-line bg-sunken p-3 text-sm"
          >
            <code className="font-mono">{example}</code>
          </pre>
        </div>
      </div>
    </article>
  );
}

function Parameters({
  title,
  parameters,
  components,
}: {
  title: string;
  parameters: readonly Parameter[];
  components: Description;
}) {
  if (parameters.length === 0) return null;
  const schema: Schema = {
    type: "object",
    properties: Object.fromEntries(
      parameters.map(({ name, schema: own, description }) => [
        name,
        { ...own, ...(description !== undefined && { description }) },
      ]),
    ),
    required: parameters.filter(({ required }) => required === true).map(({ name }) => name),
  };
  return (
    <Foldable title={title} isOpen>
      <Fields schema={schema} components={components} />
    </Foldable>
  );
}

/** A part that is made only when it is opened: the whole page would be very long. */
function Foldable({ title, isOpen = false, children }: { title: string; isOpen?: boolean; children: React.ReactNode }) {
  const [open, setOpen] = useState(isOpen);
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)} className="text-sm">
      <summary className="cursor-pointer py-0.5 font-medium">{title}</summary>
      {open && <div className="mt-1 border-s border-line ps-3">{children}</div>}
    </details>
  );
}
