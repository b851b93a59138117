import { useMemo } from "react";
import { useStored } from "../../use-stored.ts";
import type { ChangedFile } from "./patch-files.ts";

/** Which files of a session's changes the user has viewed, in this browser; a file that changes again is unviewed. */
export function useViewed(sessionId: string) {
  const [text, changeText] = useStored(`viewed ${sessionId}`);
  const marks = useMemo(() => marksOf(text), [text]);
  const markOf = (file: ChangedFile): string => `${file.key} ${file.version}`;
  return {
    isViewed: (file: ChangedFile): boolean => marks.has(markOf(file)),
    setViewed(file: ChangedFile, isViewed: boolean): void {
      changeText((now) => {
        const changed = marksOf(now);
        if (isViewed) changed.add(markOf(file));
        else changed.delete(markOf(file));
        return changed.size === 0 ? null : [...changed].join("\n");
      });
    },
  };
}

function marksOf(text: string | null): Set<string> {
  return new Set(text?.split("\n") ?? []);
}
