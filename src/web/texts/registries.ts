import { english } from "./en/registries.ts";
import { textsOf } from "./texts.ts";

/** Texts of the settings of private package registries. */
export const useRegistryTexts = textsOf(english, { de: () => import("./de/registries.ts") });
