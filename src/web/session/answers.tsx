import type { Answer } from "../../domain/answers/answer.ts";
import { Badge, type Tone } from "../elements/badge.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { Ago, Until } from "../elements/time.tsx";
import { client } from "../query.ts";

/** What was written on forges, in Slack and in Linear because of a session, or is to be; the newest first. */
export function Answers({ id }: { id: string }) {
  return (
    <PagedList
      label="Answers"
      queryKey={["answers", id]}
      readPage={(cursor) => client.session.answers(id, { limit: 20, cursor })}
      itemsOf={(page) => page.answers}
      refreshMs={3_000}
      empty="Nothing was written on a forge, in Slack or in Linear because of this session."
    >
      {(answer) => <Row key={answer.id} answer={answer} />}
    </PagedList>
  );
}

const looks: Record<Answer["status"], { label: string; tone: Tone }> = {
  pending: { label: "Pending", tone: "warn" },
  sent: { label: "Sent", tone: "good" },
  refused: { label: "Refused", tone: "bad" },
  dead: { label: "Given up", tone: "bad" },
};
const services = { slack: "Message in Slack", linear: "Comment in Linear" };
const kinds = {
  comment: "Comment",
  reply: "Reply",
  resolution: "Resolved thread",
  reaction: "Reaction",
  status: "Commit status",
  settings: "Settings",
  service: "Message",
};

function Row({ answer }: { answer: Answer }) {
  const { kind, service, subject, status, text, url, problem, attempts, nextAttemptAt } = answer;
  const name = service === null ? kinds[kind] : services[service];
  const about = subject === null ? "" : ` on ${subject.kind === "issue" ? "issue" : "pull request"} ${subject.number}`;
  return (
    <li className="space-y-1.5 px-4 py-2.5 text-sm">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <span className="font-medium">
          {name}
          {about}
        </span>
        <Badge {...looks[status]} moving={status === "pending"} />
        {url !== null && /^https?:/u.test(url) && (
          <a href={url} target="_blank" rel="noreferrer noopener" className="underline">
            Show it<span className="sr-only"> (opens in a new tab)</span>
          </a>
        )}
        <span className="ml-auto text-muted">
          {nextAttemptAt !== null && attempts > 0 && (
            <>
              next attempt <Until at={nextAttemptAt} />
              {" · "}
            </>
          )}
          <Ago at={answer.createdAt} />
        </span>
      </div>
      {problem !== null && <p className="text-bad">{problem}</p>}
      {text !== "" && (
        <pre className="max-h-40 overflow-auto font-sans break-words whitespace-pre-wrap text-muted" tabIndex={0}>
          {text}
        </pre>
      )}
    </li>
  );
}
