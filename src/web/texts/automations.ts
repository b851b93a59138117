export type { AutomationTexts } from "./en/automations.ts";
import { english } from "./en/automations.ts";
import { textsOf } from "./texts.ts";

/** Texts of the automations' pages. */
export const useAutomationTexts = textsOf(english, { de: () => import("./de/automations.ts") });
