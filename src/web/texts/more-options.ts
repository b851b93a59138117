import { english } from "./en/more-options.ts";
import { textsOf } from "./texts.ts";

/** Texts of what else can be said of a new session. */
export const useMoreOptionsTexts = textsOf(english, { de: () => import("./de/more-options.ts") });
