import { useMemo } from "react";
import { namedFields, usualPullRequest, type PullRequestValues } from "../elements/sessions/pull-request-values.ts";
import { useStored } from "../use-stored.ts";

/** The additional fields of a new session, as written. */
export interface MoreOptions {
  readonly branchName: string;
  readonly labels: readonly string[];
  /** URLs of those beside the chosen one, one on each line. */
  readonly repositories: string;
  /** Whether pull requests are opened only if every repository took the work. */
  readonly together: boolean;
  readonly pullRequest: PullRequestValues;
}

/** The draft of a session that is not started yet. */
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
  readonly more: MoreOptions;
}

/** Nothing more said. */
export const nothingMore: MoreOptions = {
  branchName: "",
  labels: [],
  repositories: "",
  together: false,
  pullRequest: usualPullRequest,
};

const nothing: Draft = { prompt: "", repository: null, branch: null, agent: null, budget: "", more: nothingMore };
const key = "draft";

/** The draft, which this browser remembers for all of its tabs, and a function that changes parts of it as it is then. */
export function useDraft(): [Draft, (changes: Partial<Draft> | ((draft: Draft) => Partial<Draft>)) => void] {
  const [stored, change] = useStored(key);
  const draft = useMemo(() => draftOf(stored), [stored]);
  return [
    draft,
    (changes) =>
      change((text) => {
        const now = draftOf(text);
        return JSON.stringify({ ...now, ...(typeof changes === "function" ? changes(now) : changes) });
      }),
  ];
}

/**
 * The draft after a session was started with it: repository and agent stay, since they are most often the same next
 * time.
 */
export function withoutSent({ prompt, budget, more }: Draft, sent: Draft): Partial<Draft> {
  return {
    // Meanwhile the user may have begun the next one.
    prompt: prompt.startsWith(sent.prompt) ? prompt.slice(sent.prompt.length).trimStart() : prompt,
    budget: budget === sent.budget ? "" : budget,
    more: JSON.stringify(more) === JSON.stringify(sent.more) ? nothingMore : more,
  };
}

function draftOf(stored: string | null): Draft {
  if (stored === null) return nothing;
  try {
    const { prompt, repository, branch, agent, budget, more } = JSON.parse(stored) as Partial<Draft>;
    return {
      prompt: typeof prompt === "string" ? prompt : "",
      repository: typeof repository?.url === "string" && typeof repository.name === "string" ? repository : null,
      branch: typeof branch === "string" ? branch : null,
      agent: typeof agent === "string" ? agent : null,
      budget: typeof budget === "string" ? budget : "",
      more: readMore(more),
    };
  } catch {
    // Another version of the app wrote it otherwise.
    return nothing;
  }
}

/** Each option that is stored in the form that it has now. */
function readMore(stored: Partial<MoreOptions> | undefined): MoreOptions {
  const pullRequest: Partial<PullRequestValues> | undefined = stored?.pullRequest;
  const written = (text: unknown): string => (typeof text === "string" ? text : "");
  return {
    branchName: written(stored?.branchName),
    labels: Array.isArray(stored?.labels) ? stored.labels.filter((label) => typeof label === "string") : [],
    repositories: written(stored?.repositories),
    together: stored?.together === true,
    pullRequest: {
      draft: pullRequest?.draft === true,
      labels: written(pullRequest?.labels),
      reviewers: written(pullRequest?.reviewers),
      assignees: written(pullRequest?.assignees),
    },
  };
}

/** How many of the options say something: they may be out of sight. */
export function countMore({ branchName, labels, repositories, together, pullRequest }: MoreOptions): number {
  const texts = [branchName, repositories, ...namedFields.map((name) => pullRequest[name])];
  const choices = [labels.length > 0, together && repositories.trim() !== "", pullRequest.draft];
  return texts.filter((text) => text.trim() !== "").length + choices.filter(Boolean).length;
}
