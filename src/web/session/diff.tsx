import { parsePatchFiles, type FileDiffMetadata } from "@pierre/diffs";
import { FileDiff, MultiFileDiff } from "@pierre/diffs/react";
import { useMemo } from "react";
import type { SessionDiff } from "../../domain/sessions/session.ts";

const options = {
  diffStyle: "unified",
  theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
  themeType: "system",
  overflow: "wrap",
  disableFileHeader: true,
} as const;

type Repository = SessionDiff["repositories"][number];

/** The session's changes, one fold per file. */
export function Diff({ repository }: { repository: Repository }) {
  const files = useMemo(() => filesOf(repository.patch), [repository.patch]);
  return (
    <section aria-label={`Changes in ${repository.name}`} className="space-y-3">
      <div className="flex flex-wrap items-baseline gap-x-3 text-sm">
        <h2 className="font-medium wrap-anywhere">{repository.name}</h2>
        {files !== null && (
          <p className="text-xs text-muted">
            {files.length === 1 ? "1 file" : `${files.length} files`} <LineCount files={files} />
          </p>
        )}
      </div>
      {files === null ? (
        <pre tabIndex={0} aria-label="Patch" className="card overflow-x-auto p-3 font-mono text-xs">
          {repository.patch}
        </pre>
      ) : (
        files.map((file) => (
          <FileFold key={`${file.prevName ?? ""} ${file.name}`} file={file} open={files.length <= 20} />
        ))
      )}
      {repository.truncated && (
        <p className="text-sm text-warn">Not all of the patch is kept here; see the pull request for all of it.</p>
      )}
    </section>
  );
}

/** Null if the patch can't be parsed: it is shown as text then. */
function filesOf(patch: string): FileDiffMetadata[] | null {
  try {
    return parsePatchFiles(patch).flatMap(({ files }) => files);
  } catch {
    return null;
  }
}

function LineCount({ files }: { files: readonly FileDiffMetadata[] }) {
  const hunks = files.flatMap((file) => file.hunks);
  const added = hunks.reduce((sum, hunk) => sum + hunk.additionLines, 0);
  const removed = hunks.reduce((sum, hunk) => sum + hunk.deletionLines, 0);
  return (
    <span className="text-xs tabular-nums">
      <span className="text-good">
        +{added}
        <span className="sr-only"> lines added,</span>
      </span>{" "}
      <span className="text-bad">
        −{removed}
        <span className="sr-only"> lines removed</span>
      </span>
    </span>
  );
}

function FileFold({ file, open }: { file: FileDiffMetadata; open: boolean }) {
  return (
    <details className="card group overflow-hidden" open={open}>
      <summary className="flex cursor-pointer list-none items-center gap-3 px-3 py-2 text-sm -outline-offset-2 hover:bg-sunken">
        <span aria-hidden className="text-muted group-open:rotate-90">
          ›
        </span>
        <span className="min-w-0 flex-1 font-mono text-[0.85em] break-all">
          {file.prevName === undefined || file.prevName === file.name ? file.name : `${file.prevName} → ${file.name}`}
        </span>
        <LineCount files={[file]} />
      </summary>
      <div className="border-t border-line text-xs">
        {file.hunks.length === 0 ? (
          <p className="p-3 text-muted">No lines to show: a binary file, a new mode or a new name.</p>
        ) : (
          <FileDiff fileDiff={file} options={options} disableWorkerPool />
        )}
      </div>
    </details>
  );
}

/** The change of one file, as a tool call reported it. */
export function FileChange({ path, before, after }: { path: string; before: string | null; after: string }) {
  return (
    <div className="overflow-hidden rounded-md border border-line text-xs">
      <MultiFileDiff
        oldFile={{ name: path, contents: before ?? "" }}
        newFile={{ name: path, contents: after }}
        options={options}
        disableWorkerPool
      />
    </div>
  );
}
