export type { InsightTexts } from "./en/insight.ts";
import { english } from "./en/insight.ts";
import { textsOf } from "./texts.ts";

/** Texts of the page that tells what came of sessions. */
export const useInsightTexts = textsOf(english, { de: () => import("./de/insight.ts") });
