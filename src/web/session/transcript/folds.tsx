import { createContext, use, useState } from "react";

/** The unfolded lines of a transcript, by key: a line that leaves the window and comes back is as it was. */
export type Folds = Set<string>;

/** The folds of the transcript around a component. */
export const FoldsContext = createContext<Folds>(new Set());

/** Whether something is unfolded, and a function that changes it. */
export function useFold(key: string): [boolean, (isOpen: boolean) => void] {
  const folds = use(FoldsContext);
  const [isOpen, setOpen] = useState(() => folds.has(key));
  return [
    isOpen,
    (open) => {
      if (open) folds.add(key);
      else folds.delete(key);
      setOpen(open);
    },
  ];
}
