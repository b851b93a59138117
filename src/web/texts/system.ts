export type { SystemTexts } from "./en/system.ts";
import { english } from "./en/system.ts";
import { textsOf } from "./texts.ts";

/** Texts of the page that tells how the server is. */
export const useSystemTexts = textsOf(english, { de: () => import("./de/system.ts") });
