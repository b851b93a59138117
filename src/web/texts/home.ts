export type { HomeTexts } from "./en/home.ts";
import { english } from "./en/home.ts";
import { textsOf } from "./texts.ts";

/** Texts of the page of all sessions, and of the form that starts one. */
export const useHomeTexts = textsOf(english, { de: () => import("./de/home.ts") });
