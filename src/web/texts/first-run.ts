import { english } from "./en/first-run.ts";
import { textsOf } from "./texts.ts";

/** Texts of the guide to the first pull request. */
export const useFirstRunTexts = textsOf(english, { de: () => import("./de/first-run.ts") });
