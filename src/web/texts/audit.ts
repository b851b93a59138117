export type { AuditTexts } from "./en/audit.ts";
import { english } from "./en/audit.ts";
import { textsOf } from "./texts.ts";

/** Texts of the audit log’s page. */
export const useAuditTexts = textsOf(english, { de: () => import("./de/audit.ts") });
