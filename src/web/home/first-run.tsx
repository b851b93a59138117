import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useId, type ReactNode } from "react";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { Icon } from "../elements/icon.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { PullRequestLink } from "../elements/sessions/pull-request.tsx";
import { client, useMe } from "../query.ts";
import { useFirstRunTexts } from "../texts/first-run.ts";
import { agentSteps, fewSessions, forgeStep, pullRequestStep, shownSession, type StepState } from "./first-steps.ts";
import type { Read } from "./newest-first.ts";
import { offeredQuery } from "./offered.ts";

/** A user who comes back from the settings, or after a restart of the server, should see the changes. */
const anew = { staleTime: 0, retry: false } as const;

/** Leads to the first pull request: what it takes, what of it is there, and how the rest comes. Nothing once there are several sessions. */
export function FirstRun() {
  const texts = useFirstRunTexts();
  const id = useId();
  const sessions = useQuery({
    queryKey: ["sessions", "first"],
    queryFn: async (): Promise<Read> => {
      const page = await client.session.list({ archived: "all", limit: fewSessions + 1 });
      return { sessions: page.sessions, next: page.nextCursor };
    },
  });
  if (sessions.data === undefined || sessions.data.sessions.length > fewSessions) return null;
  const session = shownSession(sessions.data.sessions);
  return (
    <section aria-labelledby={id} className="card mx-3 max-w-2xl space-y-3 p-4 sm:mx-auto">
      <div>
        <h2 id={id} className="font-medium">
          {texts.title}
        </h2>
        <p className="text-sm text-muted">{texts.about}</p>
      </div>
      <ol className="space-y-3">
        <AgentSteps />
        <ForgeStep />
        <Step title={texts.session.title} state={session === null ? "open" : "done"}>
          {session === null ? (
            <>
              {texts.session.write} <q className="text-ink">{texts.session.example}</q>
            </>
          ) : (
            <>
              {texts.session.started}{" "}
              <Link to="/sessions/$id" params={{ id: session.id }} className="text-accent underline">
                {texts.session.open}
              </Link>
            </>
          )}
        </Step>
        <PullRequestStep session={session} />
      </ol>
    </section>
  );
}

function AgentSteps() {
  const texts = useFirstRunTexts();
  const agents = useQuery({ queryKey: ["agents"], queryFn: () => client.agent.list(), ...anew });
  const { key, agent } = agentSteps(agents.data?.agents);
  return (
    <>
      <Step title={texts.key.title} state={key.state} error={agents.error}>
        {key.state === "done" && (key.model === null ? texts.key.doneWithout : texts.key.done(key.model))}
        {key.problem !== null && (
          <>
            <Problem>{key.problem}</Problem> {texts.key.remedy}
          </>
        )}
      </Step>
      <Step title={texts.agent.title} state={agent.state}>
        {agent.state === "done" && agent.name !== null && texts.agent.done(agent.name)}
        {agent.state === "open" && agent.name === null && texts.agent.first}
        {agent.problem !== null && (
          <>
            <Problem>{texts.agent.lacks(agent.name ?? "", agent.problem)}</Problem> {texts.agent.other}
          </>
        )}
      </Step>
    </>
  );
}

function ForgeStep() {
  const texts = useFirstRunTexts().forge;
  const scopes = useMe().data?.scopes ?? [];
  const isAdmin = scopes.includes("admin");
  const offered = useQuery({ ...offeredQuery(""), ...anew });
  const connections = useQuery({
    queryKey: ["connections", "first"],
    queryFn: () => client.connection.list({ limit: 20 }),
    enabled: isAdmin,
    ...anew,
  });
  const { state, forges, problems } = forgeStep(offered.data, connections.data?.connections);
  return (
    <Step title={texts.title} state={state} error={offered.error}>
      {state === "done" && texts.done(forges.join(", "))}
      {state === "open" && (
        <>
          {problems.length === 0 && texts.none}
          {problems.map(({ forge, text }) => (
            <Problem key={`${forge} ${text}`}>{texts.lacks(forge, text)} </Problem>
          ))}
        </>
      )}{" "}
      {state === "open" &&
        (isAdmin ? (
          <>
            <Link to="/settings" hash="connections" className="text-accent underline">
              {texts.connect}
            </Link>
            {texts.orToken}
          </>
        ) : (
          texts.askAdmin
        ))}
    </Step>
  );
}

function PullRequestStep({ session }: { session: SessionDetail | null }) {
  const texts = useFirstRunTexts().pullRequest;
  const { state, stage } = pullRequestStep(session);
  const failure = session?.failure ?? null;
  const [pullRequest] = session?.pullRequests ?? [];
  return (
    <Step title={texts.title} state={state}>
      {pullRequest !== undefined ? (
        <>
          {texts.opened} <PullRequestLink pullRequest={pullRequest} /> {texts.next}{" "}
          <Link to="/automations" className="text-accent underline">
            {texts.automate}
          </Link>
        </>
      ) : failure !== null ? (
        <>
          <Problem>{failure.reason}</Problem> {failure.remedy}
        </>
      ) : (
        texts[stage]
      )}
    </Step>
  );
}

const lamps: Readonly<Record<StepState, { readonly icon: `lamp-${string}`; readonly colour: string }>> = {
  done: { icon: "lamp-completed", colour: "text-good" },
  open: { icon: "lamp-queued", colour: "text-muted" },
  unknown: { icon: "lamp-draft", colour: "text-muted" },
};

/** A step: what it is about, whether it is done, and what it lacks. */
function Step({
  title,
  state,
  error = null,
  children,
}: {
  title: string;
  state: StepState;
  /** Why it can't be known. */
  error?: Error | null;
  children: ReactNode;
}) {
  const texts = useFirstRunTexts();
  const { icon, colour } = lamps[state];
  return (
    <li className="flex gap-3 text-sm">
      <span className={`flex h-5 items-center ${colour}`}>
        <Icon name={icon} className="size-3.5" />
      </span>
      <div className="min-w-0 flex-1 wrap-anywhere">
        <p className="font-medium">
          {title} <span className="sr-only">{texts[state]}</span>
        </p>
        <div className="text-muted empty:hidden">{children}</div>
        <ErrorText error={error} />
      </div>
    </li>
  );
}

function Problem({ children }: { children: ReactNode }) {
  return <span className="text-warn">{children}</span>;
}
