export type { SettingsTexts } from "./en/settings.ts";
import { english } from "./en/settings.ts";
import { textsOf } from "./texts.ts";

/** Texts of the settings’ page. */
export const useSettingsTexts = textsOf(english, { de: () => import("./de/settings.ts") });
