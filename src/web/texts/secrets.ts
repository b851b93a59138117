import { english } from "./en/secrets.ts";
import { textsOf } from "./texts.ts";

/** Texts of secrets. */
export const useSecretTexts = textsOf(english, { de: () => import("./de/secrets.ts") });
