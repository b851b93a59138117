export type { LedgerTexts } from "./en/ledger.ts";
import { english } from "./en/ledger.ts";
import { textsOf } from "./texts.ts";

/** Texts of the ledger. */
export const useLedgerTexts = textsOf(english, { de: () => import("./de/ledger.ts") });
