import type { SourceName } from "../../domain/automations/source-event.ts";
import { cloudEvents } from "./cloud-events.ts";
import { jira } from "./jira.ts";
import { linear } from "./linear.ts";
import { pagerduty } from "./pagerduty.ts";
import { sentry } from "./sentry.ts";
import { slack } from "./slack.ts";
import type { Source } from "./source.ts";

/** All sources by name. */
export const sources: Readonly<Record<SourceName, Source>> = { sentry, linear, jira, slack, pagerduty, cloudEvents };
