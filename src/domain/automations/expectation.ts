import { z } from "zod";

/** How long after its time a tick, or the run that it starts, may begin before its automation counts as silent, in ms. */
export const silenceGraceMs = 10 * 60_000;

/** Runs that an automation is expected to start, whatever triggers it. */
export const expectationSchema = z.object({
  atLeast: z.number().int().min(1).max(1_000).meta({ description: "Runs that have their session." }),
  everyHours: z.number().int().min(1).max(744).meta({ description: "In any so many hours, at most 31 days." }),
});
/** See `expectationSchema`. */
export type Expectation = z.infer<typeof expectationSchema>;

/** Why an automation is silent: it was expected to fire and did not. */
export const alertSchema = z.object({ since: z.iso.datetime(), reason: z.string() });
