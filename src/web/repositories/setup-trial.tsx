import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useLayoutEffect, useRef, useState, type FormEvent, type ReactNode } from "react";
import { ClientError } from "../../client.ts";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { Field, fieldOf } from "../elements/field.tsx";
import { Icon } from "../elements/icon.tsx";
import { ErrorText, Loading } from "../elements/notice.tsx";
import { searchOfPage } from "../elements/search-of-page.ts";
import { StatusBadge } from "../elements/sessions/status-badge.tsx";
import { client, useMay } from "../query.ts";
import { Banners } from "../session/banners.tsx";
import { Steps } from "../session/steps.tsx";
import { Output } from "../session/transcript/output.tsx";
import { useSessionView } from "../session/view/use-session-view.ts";
import type { Item, SessionView } from "../session/view/view.ts";
import { useRepositoryTexts } from "../texts/repositories.ts";

/**
 * Tries a repository's setup. The address names the trial, so that it is there after a reload, and for others who get the address.
 * @param saveFirst saves what was changed; null: nothing was. What it throws is shown where it was changed
 */
export function SetupTrial({ id, saveFirst }: { id: string; saveFirst: (() => Promise<unknown>) | null }) {
  const given = useSearch({ from: "/repositories/$id", shouldThrow: false });
  const { trial } = searchOfPage(given);
  const texts = useRepositoryTexts().trial;
  const may = useMay("write");
  if (!may && trial === undefined) return null;
  return (
    <div className="space-y-4 border-t border-line pt-4">
      <div className="space-y-1">
        <h3 className="text-sm font-medium">{texts.title}</h3>
        <p className="max-w-prose text-sm text-muted">
          {texts.about} {saveFirst !== null && texts.unsaved}
        </p>
      </div>
      {may && <TrialForm id={id} saveFirst={saveFirst} hasTrial={trial !== undefined} />}
      {trial !== undefined && <Trial key={trial} sessionId={trial} />}
    </div>
  );
}

function TrialForm({
  id,
  saveFirst,
  hasTrial,
}: {
  id: string;
  saveFirst: (() => Promise<unknown>) | null;
  hasTrial: boolean;
}) {
  const texts = useRepositoryTexts().trial;
  const navigate = useNavigate();
  const [branch, setBranch] = useState("");
  const start = useMutation({
    mutationFn: async () => {
      if (saveFirst !== null && (await saveFirst().catch(() => null)) === null) return null;
      return client.repository.trySetup(id, branch.trim() === "" ? {} : { branch: branch.trim() });
    },
    onSuccess: async (session) => {
      if (session === null) return;
      await navigate({
        to: "/repositories/$id",
        params: { id },
        search: { trial: session.id },
        replace: true,
        resetScroll: false,
        ignoreBlocker: true,
      });
    },
  });
  const wrong = fieldOf(start.error, ["branch"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!start.isPending) start.mutate();
  };
  const verb = saveFirst !== null ? texts.saveFirst : hasTrial ? texts.again : texts.button;
  return (
    <form onSubmit={submit} noValidate className="space-y-3">
      <div className="max-w-sm">
        <Field label={texts.branch} hint={texts.branchHint} error={wrong === null ? null : start.error}>
          {(attributes) => (
            <input
              {...attributes}
              className="field"
              autoComplete="off"
              autoCapitalize="none"
              spellCheck={false}
              value={branch}
              onChange={({ target }) => {
                setBranch(target.value);
                start.reset();
              }}
            />
          )}
        </Field>
      </div>
      <button type="submit" className="button" disabled={start.isPending}>
        <Icon name="execute" />
        {start.isPending ? texts.starting : verb}
      </button>
      <ErrorText error={wrong === null ? start.error : null} />
    </form>
  );
}

function Trial({ sessionId }: { sessionId: string }) {
  const texts = useRepositoryTexts().trial;
  const session = useQuery({
    queryKey: ["session", sessionId],
    queryFn: () => client.session.get(sessionId),
    // Its place in the queue changes without an event.
    refetchInterval: ({ state }) => (state.data?.status === "queued" && state.error === null ? 3_000 : false),
  });
  if (session.data !== undefined) return <Found session={session.data} />;
  if (session.error === null) return <Loading lines={3} />;
  const isGone = session.error instanceof ClientError && session.error.status === 404;
  return isGone ? <p className="text-sm text-muted">{texts.gone}</p> : <ErrorText error={session.error} />;
}

function Found({ session }: { session: SessionDetail }) {
  const { id, status, summary } = session;
  const texts = useRepositoryTexts().trial;
  const queries = useQueryClient();
  const onNews = useCallback(() => void queries.invalidateQueries({ queryKey: ["session", id] }), [queries, id]);
  const { view, connected, error } = useSessionView(id, !isFinal(status), onNews);
  return (
    <section aria-label={texts.result} className="space-y-3">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <output>
          <StatusBadge status={status} />
        </output>
        <Steps steps={trialSteps(view)} isCompleted={status === "completed"} />
        <span className="ms-auto flex flex-wrap items-center gap-3">
          <Cancel session={session} />
          <Link to="/sessions/$id" params={{ id }} className="text-sm text-accent underline">
            {texts.session}
          </Link>
        </span>
      </div>
      <Banners session={session} />
      {status === "completed" && summary !== null && <p className="text-sm">{summary}</p>}
      {!connected && <p className="text-sm text-warn">{texts.lost}</p>}
      <ErrorText error={error} />
      {outputsOf(view).map((call) => (
        <SetupOutput key={call.key} call={call} isFinal={isFinal(status)} />
      ))}
    </section>
  );
}

/** A trial ends after the setup. */
function trialSteps(view: SessionView): SessionView["steps"] {
  return view.steps.filter(({ name }) => name === "prepare" || name === "setup");
}

type Call = Extract<Item, { kind: "tool" }>;

function outputsOf(view: SessionView): readonly Call[] {
  return view.items.flatMap((item) => (item.kind === "tool" && item.tool.kind === "setup" ? [item] : []));
}

function SetupOutput({ call: { tool }, isFinal: isOver }: { call: Call; isFinal: boolean }) {
  const texts = useRepositoryTexts().trial;
  const text = tool.content.map((content) => (content.type === "text" ? content.text : "")).join("");
  if (text === "") return isOver ? <p className="text-sm text-muted">{texts.noOutput}</p> : null;
  return (
    <Tail>
      <Output label={texts.output(tool.title)} what={texts.copyOutput} text={text} />
    </Tail>
  );
}

/** Keeps the end of an output in sight while it grows, unless a reader has scrolled away from it. */
function Tail({ children }: { children: ReactNode }) {
  const frame = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const output = frame.current?.querySelector("pre");
    if (output !== null && output !== undefined && isAtEnd.current) output.scrollTop = output.scrollHeight;
  });
  return (
    <div
      ref={frame}
      onScrollCapture={({ target }) => {
        if (!(target instanceof HTMLElement)) return;
        isAtEnd.current = target.scrollTop + target.clientHeight >= target.scrollHeight - nearPx;
      }}
    >
      {children}
    </div>
  );
}

/** So many pixels before its end count as the end. */
const nearPx = 24;

function Cancel({ session: { id, status } }: { session: SessionDetail }) {
  const texts = useRepositoryTexts().trial;
  const queries = useQueryClient();
  const may = useMay("write");
  const cancel = useMutation({
    mutationFn: () => client.session.cancel(id),
    onSuccess: (session) => queries.setQueryData(["session", id], session),
  });
  if (!may || isFinal(status)) return null;
  // A running setup ends a moment after the request.
  const isCancelling = !cancel.isIdle && cancel.error === null;
  return (
    <>
      <ErrorText error={cancel.error} />
      <button type="button" className="button" disabled={isCancelling} onClick={() => cancel.mutate()}>
        <Icon name="stop" />
        {isCancelling ? texts.cancelling : texts.cancel}
      </button>
    </>
  );
}
