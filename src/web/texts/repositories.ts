export type { RepositoryTexts } from "./en/repositories.ts";
import { english } from "./en/repositories.ts";
import { textsOf } from "./texts.ts";

/** Texts of the repositories' pages. */
export const useRepositoryTexts = textsOf(english, { de: () => import("./de/repositories.ts") });
