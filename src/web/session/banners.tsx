import type { ReactNode } from "react";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { isShared } from "../query.ts";
import { Until } from "../elements/time.tsx";
import { useSessionTexts } from "../texts/session.ts";
import { RaiseBudget } from "./raise-budget.tsx";

/** The most important about a session: why it failed, what it waits for, that nothing isolates it. */
export function Banners({ session }: { session: SessionDetail }) {
  const texts = useSessionTexts().banners;
  const { sandboxed, failure, retry, waiting } = session;
  return (
    <div className="space-y-2 pt-3 empty:hidden">
      {!sandboxed && !isShared && (
        <Banner tone="warn" title={texts.notSandboxed}>
          {texts.notSandboxedText}
        </Banner>
      )}
      {failure !== null && (
        <Banner tone="bad" title={failure.reason}>
          {failure.remedy} <code className="text-xs">({failure.code})</code>
        </Banner>
      )}
      {retry !== null && (
        <Banner tone="warn" title={retry.reason}>
          {texts.retried} <Until at={retry.at} />
          {retry.attempt > 1 && texts.afterAttempts(retry.attempt)}. <code className="text-xs">({retry.code})</code>
        </Banner>
      )}
      {waiting !== null && !isShared && <RaiseBudget session={session} />}
    </div>
  );
}

function Banner({ tone, title, children }: { tone: "warn" | "bad"; title: string; children: ReactNode }) {
  const className = tone === "warn" ? "bg-warn-soft text-warn" : "bg-bad-soft text-bad";
  return (
    <div role={tone === "bad" ? "alert" : "note"} className={`rounded-lg px-3 py-2 text-sm break-words ${className}`}>
      <p className="font-medium">{title}</p>
      <p>{children}</p>
    </div>
  );
}
