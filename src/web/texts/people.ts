export type { PeopleTexts } from "./en/people.ts";
import { english } from "./en/people.ts";
import { textsOf } from "./texts.ts";

/** Texts of the page of everybody who signs in. */
export const usePeopleTexts = textsOf(english, { de: () => import("./de/people.ts") });
