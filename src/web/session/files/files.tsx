import { queryOptions, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ErrorText, Loading } from "../../elements/notice.tsx";
import { useElementTexts } from "../../texts/elements.ts";
import { useFilesTexts } from "../../texts/files.ts";
import { readFolder, type LoadedFolder } from "./calls.ts";
import { FileView } from "./file-view.tsx";
import { foldersAbove, rowsOf, type OpenFolder } from "./rows.ts";
import { Tree } from "./tree.tsx";

/** How often what is shown is read again while an agent works, in ms: each time a worker looks into a repository. */
const againMs = 10_000;

/** The files of a session's workspace: a tree whose folders are loaded as they are opened, or one file. */
export function Files({
  id,
  isAtWork,
  file,
  onOpen,
}: {
  id: string;
  isAtWork: boolean;
  /** Path of the file that is shown; null: the tree is. */
  file: string | null;
  onOpen: (path: string | undefined) => void;
}) {
  const refetchInterval: number | false = isAtWork ? againMs : false;
  /** The folders that somebody opened or closed. */
  const [opened, setOpened] = useState<ReadonlyMap<string, boolean>>(
    () => new Map(file === null ? [] : foldersAbove(file).map((path) => [path, true])),
  );
  const [pages, setPages] = useState<ReadonlyMap<string, number>>(new Map());
  /** The row that has the focus when it is in the tree, by its key. */
  const [active, setActive] = useState<string | null>(file);
  const queries = useQueryClient();
  const read = (path: string) => {
    const count = pages.get(path) ?? 1;
    const keyOf = (upTo: number) => ["files", id, path, upTo];
    return queryOptions<LoadedFolder>({
      queryKey: keyOf(count),
      queryFn: () => readFolder(id, path, count),
      refetchInterval,
      // What was loaded stays in sight while more is.
      placeholderData: () => queries.getQueryData<LoadedFolder>(keyOf(count - 1)),
      enabled: file === null,
    });
  };
  const root = useQuery(read(""));
  const single = root.data?.entries.length === 1 ? root.data.entries[0]?.path : null;
  const isOpen = (path: string): boolean => opened.get(path) ?? path === single;
  const candidates = [...new Set([...opened.keys(), ...(single == null ? [] : [single])])];
  const paths = candidates.filter((path) => isOpen(path) && foldersAbove(path).every(isOpen));
  const folders = useQueries({ queries: paths.map((path) => read(path)) });
  const texts = useFilesTexts();
  const { tryAgain } = useElementTexts();
  if (file !== null) {
    return (
      <FileView key={file} id={id} path={file} refetchInterval={refetchInterval} onBack={() => onOpen(undefined)} />
    );
  }
  if (root.data === undefined) {
    if (root.error === null) return <Loading lines={6} />;
    return (
      <div className="space-y-3 py-8 text-center text-sm">
        <p className="font-medium">{texts.notShown}</p>
        <ErrorText error={root.error} />
        <button type="button" className="button" onClick={() => void root.refetch()}>
          {tryAgain}
        </button>
      </div>
    );
  }
  if (root.data.entries.length === 0) {
    return <p className="py-8 text-center text-sm text-muted">{texts.noFiles}</p>;
  }
  const open = new Map<string, OpenFolder>([["", { folder: root.data, error: null }]]);
  for (const [index, path] of paths.entries()) {
    const { data, error = null } = folders[index] ?? {};
    open.set(path, { folder: data, error });
  }
  return (
    <Tree
      rows={rowsOf(open)}
      active={active}
      onActive={setActive}
      onToggle={(path) => setOpened(new Map(opened).set(path, !isOpen(path)))}
      onMore={(path) => setPages(new Map(pages).set(path, (pages.get(path) ?? 1) + 1))}
      onRetry={(path) => void folders[paths.indexOf(path)]?.refetch()}
      onOpen={onOpen}
    />
  );
}
