export type { WebhookTexts } from "./en/webhooks.ts";
import { english } from "./en/webhooks.ts";
import { textsOf } from "./texts.ts";

/** Texts of the webhooks’ pages. */
export const useWebhookTexts = textsOf(english, { de: () => import("./de/webhooks.ts") });
