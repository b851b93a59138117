import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { ReactNode, RefObject } from "react";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { announce } from "../elements/announce.tsx";
import { Icon } from "../elements/icon.tsx";
import { client, useMay } from "../query.ts";
import { useShortcuts } from "../shell/shortcuts.ts";
import { useStored } from "../use-stored.ts";
import { useSessionTexts } from "../texts/session.ts";
import { Banners } from "./banners.tsx";
import { goToTop } from "./go-to-top.ts";
import { FollowUp } from "./transcript/follow-up.tsx";
import { Markdown } from "./transcript/markdown.tsx";
import { PlanList } from "./transcript/plan.tsx";
import { RepositoriesContext } from "./transcript/refused-host.tsx";
import { Transcript } from "./transcript/transcript.tsx";
import { useTail } from "./transcript/use-tail.ts";
import type { LiveSession } from "./view/use-session-view.ts";

/**
 * The conversation with the agent, and the field that goes on with it; its end stays in sight until the user scrolls
 * up.
 */
export function Conversation({
  session,
  live: { view, connected, error },
  actions,
  field,
  onSent,
}: {
  session: SessionDetail;
  live: LiveSession;
  /** The session's actions; null: they are shown above. */
  actions: ReactNode;
  field: RefObject<HTMLTextAreaElement | null>;
  onSent: () => void;
}) {
  const texts = useSessionTexts();
  const { id, status, summary, repositories, automationId, eventsRemovedThrough } = session;
  const isActive = !isFinal(status) && status !== "draft";
  const { content, following, follow, leave } = useTail(view.seq > 0);
  const maySteer = useMay("write");
  const [text, setText] = useMessageDraft(id);
  const queries = useQueryClient();
  const withdraw = useMutation({
    mutationFn: ({ messageId }: { messageId: string; text: string }) => client.session.withdraw(id, messageId),
    onSuccess: (changed, { text: withdrawn }) => {
      queries.setQueryData(["session", id], changed);
      setText((now) => (now === "" ? withdrawn : `${withdrawn}\n\n${now}`));
      announce(texts.transcript.withdrawn);
    },
    onError: (refused) => announce(refused.message),
  });
  const queued = useQueued(session);
  const isShortened = eventsRemovedThrough > 0;
  useShortcuts(texts.keys.group, [
    ...(maySteer ? [{ keys: "r", does: texts.keys.followUp, run: () => field.current?.focus() }] : []),
    { keys: "G", does: texts.keys.end, run: follow, isCommand: false },
    {
      keys: "g g",
      does: texts.keys.top,
      run() {
        leave();
        goToTop();
      },
      isCommand: false,
    },
  ]);
  return (
    <div ref={content} className="flex min-h-full flex-col gap-3 pt-3">
      <div className="flex-1 px-3 md:px-4">
        <RepositoriesContext value={repositories}>
          <Transcript
            view={view}
            isRunning={status === "running"}
            isShortened={isShortened}
            isAutomated={automationId !== null}
            queued={queued}
            onWithdraw={maySteer ? (messageId, withdrawn) => withdraw.mutate({ messageId, text: withdrawn }) : null}
          />
          {isShortened && view.items.length === 0 && summary !== null && <Markdown text={summary} />}
        </RepositoriesContext>
        {/* Where the page is opened: at its end. */}
        <Banners session={session} />
        {actions !== null && <div className="pt-3">{actions}</div>}
      </div>
      <div className="pointer-events-none sticky bottom-0 z-10 flex flex-col items-center gap-2 px-3 pb-3 md:px-4">
        <output className="rounded-md bg-warn-soft px-3 py-1.5 text-sm text-warn shadow-lg empty:hidden">
          {connected || error !== null ? "" : texts.transcript.reconnecting}
        </output>
        {!following && (
          <button type="button" className="button pointer-events-auto shadow-lg" onClick={follow}>
            {texts.transcript.toEnd} <Icon name="down" className="size-3.5" />
          </button>
        )}
        <div className="pointer-events-auto w-full space-y-2">
          {view.plan.length > 0 && isActive && <PlanList plan={view.plan} />}
          {status !== "draft" && maySteer && (
            <FollowUp id={id} field={field} text={text} onText={setText} isRunning={isActive} onSent={onSent} />
          )}
        </div>
      </div>
    </div>
  );
}

/** Ids of follow-up messages that no turn has taken yet. */
function useQueued({ id, status }: SessionDetail): readonly string[] {
  const messages = useQuery({
    queryKey: ["messages", id],
    queryFn: () => client.session.messages(id, { limit: 100 }),
    enabled: !isFinal(status) && status !== "draft",
  });
  // The first is what the session is for.
  return (
    messages.data?.messages.filter((sent) => sent.status === "pending" && sent.id !== id).map((sent) => sent.id) ?? []
  );
}

/** A follow-up message that is not sent yet, which this browser remembers, and a function that makes another of it as it is then. */
function useMessageDraft(sessionId: string): [string, (change: (text: string) => string) => void] {
  const [stored, changeStored] = useStored(`message ${sessionId}`);
  return [
    stored ?? "",
    (change) =>
      changeStored((text) => {
        const changed = change(text ?? "");
        return changed === "" ? null : changed;
      }),
  ];
}
