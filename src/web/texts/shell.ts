export type { ShellTexts } from "./en/shell.ts";
import { english } from "./en/shell.ts";
import { textsOf } from "./texts.ts";

/** Texts of the frame around every page. */
export const useShellTexts = textsOf(english, { de: () => import("./de/shell.ts") });
