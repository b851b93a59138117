import type { PullRequest } from "../../../domain/repositories/pull-request.ts";
import { useElementTexts } from "../../texts/elements.ts";
import { Icon } from "../icon.tsx";

const colours: Record<PullRequest["state"], string> = {
  open: "text-good",
  merged: "text-merged",
  closed: "text-muted",
};

/** A pull request as a link to its forge: number and state. */
export function PullRequestLink({ pullRequest }: { pullRequest: PullRequest }) {
  const texts = useElementTexts();
  const { url, number, state, mergeable } = pullRequest;
  const isConflicted = state === "open" && mergeable === false;
  return (
    <a
      href={url}
      target="_blank"
      rel="noreferrer noopener"
      className={`relative z-10 inline-flex shrink-0 items-center gap-1 rounded px-1 text-xs font-medium tabular-nums hover:underline ${isConflicted ? "text-warn" : colours[state]}`}
    >
      <Icon name="pull-request" className="size-3.5" />
      <span className="sr-only">{texts.pullRequest} </span>#{number}
      <span className="sr-only">
        {` ${isConflicted ? texts.conflict : texts.pullRequestStates[state]} ${texts.newTab}`}
      </span>
    </a>
  );
}
