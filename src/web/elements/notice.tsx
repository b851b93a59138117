import type { ReactNode } from "react";
import { ClientError } from "../../client.ts";
import { useElementTexts } from "../texts/elements.ts";

/** A page with nothing but a message. */
export function Notice({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="mx-auto max-w-md px-4 py-16 text-center">
      <h1 className="text-lg font-semibold">{title}</h1>
      <div className="mt-2 text-sm text-muted">{children}</div>
    </div>
  );
}

/** In place of an object that is loading, does not exist, or can't be loaded. */
export function Absent({
  missing,
  error,
  reason,
  retry,
}: {
  /** A title that says that the object does not exist. */
  missing: string;
  /** Null while it is loading. */
  error: Error | null;
  /** Why it may not exist. */
  reason: string;
  retry: () => Promise<unknown>;
}) {
  const texts = useElementTexts();
  if (error === null) return <Loading lines={8} />;
  if (error instanceof ClientError && (error.status === 404 || error.status === 400)) {
    return <Notice title={missing}>{reason}</Notice>;
  }
  return (
    <Notice title={texts.notLoaded}>
      <ErrorText error={error} />
      <button type="button" className="button mt-4" onClick={() => void retry()}>
        {texts.tryAgain}
      </button>
    </Notice>
  );
}

const widths = ["w-3/4", "w-full", "w-5/6", "w-2/3", "w-11/12", "w-1/2"];

/** In place of what is loading: lines that nothing is written on yet. */
export function Loading({ lines = 3 }: { lines?: number }) {
  const { loading } = useElementTexts();
  return (
    <div className="space-y-3 py-3">
      <output className="sr-only">{loading}</output>
      {Array.from({ length: lines }, (_, line) => (
        <div key={line} aria-hidden className={`loading-line ${widths[line % widths.length]}`} />
      ))}
    </div>
  );
}

/** An error's message, which screen readers announce. */
export function ErrorText({ error }: { error: Error | null }) {
  const { unreachable } = useElementTexts();
  // No empty element: it would have a gap.
  if (error === null) return null;
  return (
    <p role="alert" className="text-sm break-words text-bad first-letter:uppercase">
      {/* Browsers throw a TypeError with differing messages if the server can't be reached. */}
      {error instanceof TypeError ? unreachable : error.message}
    </p>
  );
}
