import { english } from "./en/consent.ts";
import { textsOf } from "./texts.ts";

/** Texts of the page that asks whether a program may act for somebody. */
export const useConsentTexts = textsOf(english, { de: () => import("./de/consent.ts") });
