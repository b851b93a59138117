import { useEffect, useRef, useState } from "react";

/** The focus in lists of sessions, which keys move. */
export interface MovingFocus {
  /** Id of the session whose row is to take the focus; null: none. */
  readonly wanted: string | null;
  /** The row that has the focus, or had it last; null: none. */
  readonly current: () => string | null;
  /** @param by 1: to the next row, -1: to the one before */
  readonly move: (by: 1 | -1) => void;
  /** To the row of a session. */
  readonly to: (id: string) => void;
}

/** @param ids of all rows, in their order */
export function useMovingFocus(ids: readonly string[]): MovingFocus {
  const [wanted, setWanted] = useState<string | null>(null);
  const last = useRef<string | null>(null);
  useEffect(() => {
    const onFocus = ({ target }: FocusEvent): void => {
      const id =
        target instanceof Element ? target.closest<HTMLElement>("[data-session]")?.dataset["session"] : undefined;
      if (id !== undefined) last.current = id;
      // It has arrived, or the user went elsewhere.
      setWanted(null);
    };
    document.addEventListener("focusin", onFocus);
    return () => document.removeEventListener("focusin", onFocus);
  }, []);
  return {
    wanted,
    current: () => (last.current !== null && ids.includes(last.current) ? last.current : null),
    to: setWanted,
    move(by) {
      const index = last.current === null ? -1 : ids.indexOf(last.current);
      const next = index === -1 ? ids[0] : ids[index + by];
      if (next !== undefined) setWanted(next);
    },
  };
}
