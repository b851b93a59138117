import type { Answer } from "../../domain/answers/answer.ts";
import { Badge, type Tone } from "../elements/badge.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { Ago, Until } from "../elements/time.tsx";
import { client } from "../query.ts";
import { useElementTexts } from "../texts/elements.ts";
import { useSessionTexts } from "../texts/session.ts";

/** The answers of a session on forges, in Slack and in Linear, sent or due; the newest first. */
export function Answers({ id }: { id: string }) {
  const texts = useSessionTexts().answers;
  return (
    <PagedList
      label={texts.label}
      queryKey={["answers", id]}
      readPage={(cursor) => client.session.answers(id, { limit: 20, cursor })}
      itemsOf={(page) => page.answers}
      refreshMs={3_000}
      empty={texts.none}
    >
      {(answer) => <Row key={answer.id} answer={answer} />}
    </PagedList>
  );
}

const tones: Record<Answer["status"], Tone> = { pending: "warn", sent: "good", refused: "bad", dead: "bad" };

function Row({ answer }: { answer: Answer }) {
  const texts = useSessionTexts().answers;
  const { newTab } = useElementTexts();
  const { kind, service, subject, status, text, url, problem, attempts, nextAttemptAt } = answer;
  const name = service === null ? texts.kinds[kind] : texts.services[service];
  const about =
    subject === null
      ? ""
      : subject.kind === "issue"
        ? texts.onIssue(subject.number)
        : texts.onPullRequest(subject.number);
  return (
    <li className="space-y-1.5 px-3 py-2 text-sm">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <span className="font-medium">
          {name}
          {about}
        </span>
        <Badge tone={tones[status]} label={texts.states[status]} moving={status === "pending"} />
        {url !== null && /^https?:/u.test(url) && (
          <a href={url} target="_blank" rel="noreferrer noopener" className="underline">
            {texts.show}
            <span className="sr-only"> {newTab}</span>
          </a>
        )}
        <span className="ms-auto text-xs text-muted">
          {nextAttemptAt !== null && attempts > 0 && (
            <>
              {texts.nextAttempt} <Until at={nextAttemptAt} />
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
