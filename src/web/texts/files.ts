export type { FilesTexts } from "./en/files.ts";
import { english } from "./en/files.ts";
import { textsOf } from "./texts.ts";

/** Texts of the files of a session's workspace. */
export const useFilesTexts = textsOf(english, { de: () => import("./de/files.ts") });
