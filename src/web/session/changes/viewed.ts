import { useState } from "react";
import { readStored, writeStored } from "../../stored.ts";
import type { ChangedFile } from "./patch-files.ts";

/** Which files of a session's changes somebody has viewed, in this browser; a file that changes again is not. */
export function useViewed(sessionId: string) {
  const key = `viewed ${sessionId}`;
  const [marks, setMarks] = useState<ReadonlySet<string>>(() => new Set(readStored(key)?.split("\n") ?? []));
  const markOf = (file: ChangedFile): string => `${file.key} ${file.version}`;
  return {
    isViewed: (file: ChangedFile): boolean => marks.has(markOf(file)),
    setViewed(file: ChangedFile, isViewed: boolean): void {
      const changed = new Set(marks);
      if (isViewed) changed.add(markOf(file));
      else changed.delete(markOf(file));
      setMarks(changed);
      writeStored(key, changed.size === 0 ? null : [...changed].join("\n"));
    },
  };
}
