export type { ElementTexts } from "./en/elements.ts";
import { english } from "./en/elements.ts";
import { textsOf } from "./texts.ts";

/** Texts of what several pages show. */
export const useElementTexts = textsOf(english, { de: () => import("./de/elements.ts") });
