import { english } from "./en/unsaved.ts";
import { textsOf } from "./texts.ts";

/** Texts of the question before what is not saved is lost. */
export const useUnsavedTexts = textsOf(english, { de: () => import("./de/unsaved.ts") });
