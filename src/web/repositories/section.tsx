import { useId, type ReactNode } from "react";
import { ErrorText, Loading } from "../elements/notice.tsx";
import { useElementTexts } from "../texts/elements.ts";
import { useRepositoryTexts } from "../texts/repositories.ts";

/** A part of a repository's page: what it is for, and its content. @param action shown beside the heading */
export function Section({
  title,
  about,
  action,
  children,
}: {
  title: string;
  about?: ReactNode;
  action?: ReactNode;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <section aria-labelledby={id} className="card space-y-4 p-4">
      <div className="space-y-1">
        <div className="flex flex-wrap items-center gap-3">
          <h2 id={id} className="me-auto font-medium">
            {title}
          </h2>
          {action}
        </div>
        {about !== undefined && <p className="max-w-prose text-sm text-muted">{about}</p>}
      </div>
      {children}
    </section>
  );
}

/** A query's content, or that it is loading, or why it can't be loaded. */
export function Loaded<Data>({
  query: { data, error, refetch },
  children,
}: {
  query: { readonly data: Data | undefined; readonly error: Error | null; readonly refetch: () => Promise<unknown> };
  children: (data: Data) => ReactNode;
}) {
  const { tryAgain } = useElementTexts();
  if (data !== undefined) return children(data);
  if (error === null) return <Loading lines={2} />;
  return (
    <div className="space-y-3">
      <ErrorText error={error} />
      <button type="button" className="button" onClick={() => void refetch()}>
        {tryAgain}
      </button>
    </div>
  );
}

/** The end of a form on the page: its button, that it was saved, and what was wrong. @param error of no field; null: there is none */
export function SaveBar({ isPending, isSaved, error }: { isPending: boolean; isSaved: boolean; error: Error | null }) {
  const texts = useRepositoryTexts();
  return (
    <>
      <ErrorText error={error} />
      <div className="flex items-center gap-3">
        <button type="submit" className="button button-primary" disabled={isPending}>
          {isPending ? texts.saving : texts.save}
        </button>
        <output className="text-sm text-good">{isSaved ? texts.saved : ""}</output>
      </div>
    </>
  );
}

/** A setting for those who may not change it. */
export function Shown({ name, value, isCode = false }: { name: string; value: string; isCode?: boolean }) {
  const { none } = useRepositoryTexts();
  if (value === "" || !isCode) {
    return (
      <div className="text-sm">
        <p className="font-medium">{name}</p>
        <p className={`wrap-anywhere whitespace-pre-wrap ${value === "" ? "text-muted" : ""}`}>
          {value === "" ? none : value}
        </p>
      </div>
    );
  }
  return (
    <div className="space-y-1 text-sm">
      <p className="font-medium">{name}</p>
      <pre tabIndex={0} aria-label={name} className="max-h-80 overflow-auto rounded-md bg-sunken p-2 text-xs">
        {value}
      </pre>
    </div>
  );
}
