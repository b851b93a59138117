import { english } from "./en/sign-in.ts";
import { textsOf } from "./texts.ts";

/** Texts of the sign-in page. */
export const useSignInTexts = textsOf(english, { de: () => import("./de/sign-in.ts") });
