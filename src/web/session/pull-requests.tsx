import type { PullRequest } from "../../domain/repositories/pull-request.ts";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { Icon } from "../elements/icon.tsx";
import { useElementTexts } from "../texts/elements.ts";
import { useSessionTexts } from "../texts/session.ts";

const colours: Record<PullRequest["state"], string> = {
  open: "text-good",
  merged: "text-merged",
  closed: "text-muted",
};

/** The pull requests that a session opened, as links with each one's state. */
export function PullRequests({ session: { pullRequests, repositories } }: { session: SessionDetail }) {
  const texts = useSessionTexts().pullRequest;
  const { newTab } = useElementTexts();
  return pullRequests.map((pullRequest) => {
    const { url, number, state, repositoryId, checks, review } = pullRequest;
    const isConflicted = state === "open" && pullRequest.mergeable === false;
    const repository = repositories.find(({ id }) => id === repositoryId)?.name ?? texts.another;
    return (
      <a key={url} href={url} target="_blank" rel="noreferrer noopener" className="button">
        <Icon name="pull-request" className={`size-4 ${isConflicted ? "text-warn" : colours[state]}`} />
        <span>
          {texts.name(number)}
          {/* Each repository has numbers of its own. */}
          {pullRequests.length > 1 && ` ${texts.of(repository)}`}
          <span className="font-normal text-muted">
            {state !== "open" && `, ${texts.states[state]}`}
            {isConflicted && <span className="text-warn">, {texts.conflict}</span>}
            {state === "open" && checks === "failed" && <span className="text-bad">, {texts.checks.failed}</span>}
            {state === "open" && checks === "passed" && <span className="text-good">, {texts.checks.passed}</span>}
            {state === "open" && review === "approved" && <span className="text-good">, {texts.reviews.approved}</span>}
            {state === "open" && review === "changesRequested" && (
              <span className="text-warn">, {texts.reviews.changesRequested}</span>
            )}
          </span>
          <span className="sr-only"> {newTab}</span>
        </span>
        <Icon name="open" className="size-3.5 text-muted" />
      </a>
    );
  });
}
