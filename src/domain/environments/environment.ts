import { z } from "zod";
import { optionalText } from "../fields/text.ts";
import { variableNameSchema } from "./secret.ts";

const variableLimit = 200;

/** How the setup step prepares a clone of a repository for the agent. */
export const environmentSchema = z.object({
  setupScript: optionalText(100_000)
    .nullable()
    .meta({ description: "Run in each new clone before the agent; null: as .devcontainer/devcontainer.json says." }),
  variables: z
    .record(variableNameSchema, optionalText(32_768))
    .refine((variables) => Object.keys(variables).length <= variableLimit, `must be at most ${variableLimit} variables`)
    .meta({ description: "Set for the script and the agent. For secrets see /secret/create." }),
});
/** See `environmentSchema`. */
export type Environment = z.infer<typeof environmentSchema>;

/** Body of an update: fields that are not sent keep their value. */
export const updateEnvironmentSchema = environmentSchema.partial();
