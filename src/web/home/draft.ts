import { useState } from "react";
import { readStored, writeStored } from "../stored.ts";

/** What somebody has written of a session that is not started yet. */
export interface Draft {
  readonly prompt: string;
  /** A connected repository by its id, or one by its URL; null: none. */
  readonly repository: {
    readonly id: string | null;
    readonly name: string;
    readonly url: string;
    /** The branch that it is configured for. */
    readonly branch: string | null;
  } | null;
  /** Null: the default one. */
  readonly branch: string | null;
  /** `<provider>:<model>`; null: the default one. */
  readonly agent: string | null;
  /** In US dollars, as it was written. */
  readonly budget: string;
}

const nothing: Draft = { prompt: "", repository: null, branch: null, agent: null, budget: "" };
const key = "draft";

/** The draft, which this browser remembers, and a function that changes parts of it. */
export function useDraft(): [Draft, (changes: Partial<Draft>) => void] {
  const [draft, setDraft] = useState(readDraft);
  return [
    draft,
    (changes) => {
      const changed = { ...draft, ...changes };
      setDraft(changed);
      writeStored(key, JSON.stringify(changed));
    },
  ];
}

function readDraft(): Draft {
  const stored = readStored(key);
  if (stored === null) return nothing;
  try {
    const { prompt, repository, branch, agent, budget } = JSON.parse(stored) as Partial<Draft>;
    return {
      prompt: typeof prompt === "string" ? prompt : "",
      repository: typeof repository?.url === "string" && typeof repository.name === "string" ? repository : null,
      branch: typeof branch === "string" ? branch : null,
      agent: typeof agent === "string" ? agent : null,
      budget: typeof budget === "string" ? budget : "",
    };
  } catch {
    // Another version of the app wrote it otherwise.
    return nothing;
  }
}
