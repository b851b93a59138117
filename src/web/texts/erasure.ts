export type { ErasureTexts } from "./en/erasure.ts";
import { english } from "./en/erasure.ts";
import { textsOf } from "./texts.ts";

/** Texts of the dialog that erases an organization. */
export const useErasureTexts = textsOf(english, { de: () => import("./de/erasure.ts") });
