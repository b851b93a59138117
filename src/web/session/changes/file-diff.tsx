import type { DiffLineAnnotation, FileDiffMetadata } from "@pierre/diffs";
import { File, FileDiff, MultiFileDiff } from "@pierre/diffs/react";
import { useSyncExternalStore, type ReactNode } from "react";
import { currentPreferences, onPreferences } from "../../shell/preferences.ts";
import { useSessionTexts } from "../../texts/session.ts";
import type { Comment } from "./comments.ts";

const options = {
  theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
  overflow: "wrap",
  disableFileHeader: true,
  // The theme's grey of comments is too faint on the colours of changed words (WCAG 2.2, 1.4.3).
  unsafeCSS: '[style*="#66707B" i] { --diffs-token-light: #444c56 !important; }',
} as const;

/** Whether lines of before and after are side by side. */
export type DiffStyle = "split" | "unified";

/** How diffs are drawn, which follows the chosen colours and language. */
function useOptions(diffStyle: DiffStyle) {
  const { theme } = useSyncExternalStore(onPreferences, currentPreferences);
  const { unmodified } = useSessionTexts().changes;
  return {
    ...options,
    diffStyle,
    themeType: theme,
    enableGutterUtility: true,
    onPostRender: (diff: HTMLElement) => sayUnmodified(diff, unmodified),
  };
}

/** Puts the count of the lines between two changes into the page's language: the library has it in English alone. */
function sayUnmodified(diff: HTMLElement, unmodified: (count: number) => string): void {
  for (const shown of (diff.shadowRoot ?? diff).querySelectorAll("[data-unmodified-lines]")) {
    const text = unmodified(Number.parseInt(shown.textContent, 10));
    if (shown.textContent !== text) shown.textContent = text;
  }
}

/** The content below a line: a comment, or the form for one. */
export interface LineNote {
  readonly comment: Comment | null;
}

/**
 * The changed lines of one file, with comments below them.
 * @param onComment called for a line that the user wants to comment on; null: comments are not allowed
 */
export function LinesOfFile({
  file,
  diff,
  diffStyle,
  notes,
  onComment,
  children,
}: {
  file: string;
  diff: FileDiffMetadata;
  diffStyle: DiffStyle;
  notes: DiffLineAnnotation<LineNote>[];
  onComment: ((side: Comment["side"], line: number) => void) | null;
  /** Draws the content below a line. */
  children: (note: DiffLineAnnotation<LineNote>) => ReactNode;
}) {
  const texts = useSessionTexts().comments;
  return (
    <FileDiff
      fileDiff={diff}
      options={useOptions(diffStyle)}
      lineAnnotations={notes}
      renderAnnotation={children}
      disableWorkerPool
      {...(onComment !== null && {
        renderGutterUtility: (hovered) => (
          <button
            type="button"
            // Above the number, which the library lifts.
            className="relative z-10 flex size-5 cursor-pointer items-center justify-center rounded bg-accent text-on-accent"
            tabIndex={-1}
            aria-label={texts.addTo(file)}
            onClick={() => {
              const line = hovered();
              if (line !== undefined) onComment(line.side, line.lineNumber);
            }}
          >
            +
          </button>
        ),
      })}
    />
  );
}

/** The change of one file, as a tool call reported it. */
export function FileChange({ path, before, after }: { path: string; before: string | null; after: string }) {
  return (
    <div className="overflow-hidden rounded-md border border-line text-xs">
      <MultiFileDiff
        oldFile={{ name: path, contents: before ?? "" }}
        newFile={{ name: path, contents: after }}
        options={useOptions("unified")}
        disableWorkerPool
      />
    </div>
  );
}

/** A whole file, with its lines numbered and highlighted as those of changes are. */
export function WholeFile({ name, text }: { name: string; text: string }) {
  const { theme } = useSyncExternalStore(onPreferences, currentPreferences);
  return (
    <div className="overflow-hidden rounded-md border border-line text-xs">
      <File file={{ name, contents: text }} options={{ ...options, themeType: theme }} disableWorkerPool />
    </div>
  );
}
