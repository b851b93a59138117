import type { ReactNode } from "react";
import type { Automation } from "../../domain/automations/automation.ts";
import { useAutomationTexts } from "../texts/automations.ts";

/** The alerts of an automation: that Offstage paused it, that it did not fire when expected, and why. */
export function Notices({ automation: { pausedReason, alert } }: { readonly automation: Automation }) {
  const texts = useAutomationTexts().notices;
  return (
    <>
      {pausedReason !== null && <Notice>{texts.paused(pausedReason)}</Notice>}
      {alert !== null && <Notice>{texts.silent(alert.reason)}</Notice>}
    </>
  );
}

function Notice({ children }: { readonly children: ReactNode }) {
  return <output className="block rounded-md bg-warn-soft px-4 py-3 text-sm break-words text-warn">{children}</output>;
}
