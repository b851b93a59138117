import { english } from "./en/notices.ts";
import { textsOf } from "./texts.ts";

/** Texts of what somebody is told of, and by which browsers. */
export const useNoticeTexts = textsOf(english, { de: () => import("./de/notices.ts") });
