export type { SessionTexts } from "./en/session.ts";
import { english } from "./en/session.ts";
import { textsOf } from "./texts.ts";

/** Texts of a session's page. */
export const useSessionTexts = textsOf(english, { de: () => import("./de/session.ts") });
