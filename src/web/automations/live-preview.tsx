import type { UseQueryResult } from "@tanstack/react-query";
import type { Preview } from "../../domain/automations/preview.ts";
import { ErrorText, Loading } from "../elements/notice.tsx";
import { useAutomationTexts } from "../texts/automations.ts";
import { EventField } from "./event-field.tsx";
import type { ChosenEvent } from "./use-chosen-event.ts";

/** A draft's prompt, with an event that is chosen here. */
export function LivePreview({
  event,
  preview: { data, error, isPlaceholderData },
  isEmpty,
  onShowProblem,
}: {
  readonly event: ChosenEvent;
  readonly preview: UseQueryResult<Preview>;
  /** Whether there are no instructions yet. */
  readonly isEmpty: boolean;
  /** Moves to the place of the problem; null: it has none. */
  readonly onShowProblem: (() => void) | null;
}) {
  const texts = useAutomationTexts().preview;
  const shown = error === null ? data : undefined;
  const isWaiting = shown === undefined && error === null && event.problem === null;
  return (
    <section aria-labelledby="preview" className="card min-w-0 space-y-3 self-start p-4 text-sm">
      <h2 id="preview" className="font-medium">
        {texts.title}
      </h2>
      <EventField event={event} />
      <ErrorText error={error} />
      {isWaiting && <Loading lines={4} />}
      {shown !== undefined && (
        <div aria-busy={isPlaceholderData} className="space-y-3">
          {isEmpty ? (
            <p className="text-muted">{texts.empty}</p>
          ) : (
            <Rendered preview={shown} onShowProblem={onShowProblem} />
          )}
          <details>
            <summary className="cursor-pointer text-muted">{texts.event}</summary>
            <pre
              tabIndex={0}
              aria-label={texts.event}
              className="mt-1 max-h-72 overflow-auto rounded-md bg-sunken p-3 text-xs"
            >
              {JSON.stringify(shown.event, null, 2)}
            </pre>
          </details>
        </div>
      )}
    </section>
  );
}

function Rendered({
  preview: { prompt, title, problem },
  onShowProblem,
}: {
  readonly preview: Preview;
  readonly onShowProblem: (() => void) | null;
}) {
  const texts = useAutomationTexts().preview;
  return (
    <>
      {/* Announced only if there is no other announcement: the user is typing. */}
      <output className="block break-words text-bad first-letter:uppercase empty:hidden">{problem}</output>
      {problem !== null && onShowProblem !== null && (
        <button type="button" className="button" onClick={onShowProblem}>
          {texts.show}
        </button>
      )}
      {title !== null && (
        <p className="wrap-anywhere">
          <span className="text-muted">{texts.runTitle}</span>
          <bdi>{title}</bdi>
        </p>
      )}
      {prompt !== null && (
        <figure>
          <figcaption className="text-muted">{texts.prompt}</figcaption>
          <pre
            tabIndex={0}
            dir="auto"
            aria-label={texts.prompt}
            className="mt-1 max-h-[50dvh] overflow-auto rounded-md bg-sunken p-3 font-sans wrap-anywhere whitespace-pre-wrap"
          >
            {prompt}
          </pre>
        </figure>
      )}
    </>
  );
}
