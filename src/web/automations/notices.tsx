import type { ReactNode } from "react";
import type { Automation } from "../../domain/automations/automation.ts";

/** What an automation's owner has to know of it: that Offstage paused it, that it did not fire when it was expected to, and why. */
export function Notices({ automation: { pausedReason, alert } }: { readonly automation: Automation }) {
  return (
    <>
      {pausedReason !== null && <Notice>Paused by Offstage: {pausedReason}. Resume it once the cause is gone.</Notice>}
      {alert !== null && <Notice>It was expected to fire and did not: {alert.reason}.</Notice>}
    </>
  );
}

function Notice({ children }: { readonly children: ReactNode }) {
  return <output className="block rounded-md bg-warn-soft px-4 py-3 text-sm break-words text-warn">{children}</output>;
}
