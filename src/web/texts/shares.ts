import { english } from "./en/shares.ts";
import { textsOf } from "./texts.ts";

/** Texts of a link that shows a session. */
export const useShareTexts = textsOf(english, { de: () => import("./de/shares.ts") });
