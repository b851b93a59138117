import { english } from "./en/pull-requests.ts";
import { textsOf } from "./texts.ts";

/** Texts of how pull requests are opened. */
export const usePullRequestTexts = textsOf(english, { de: () => import("./de/pull-requests.ts") });
