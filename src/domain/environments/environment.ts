import { z } from "zod";
import { optionalText, text } from "../fields/text.ts";
import { variableNameSchema } from "./secret.ts";

const variableLimit = 200;
const sparseLimit = 200;

/** A folder of a repository, as `git sparse-checkout` takes it: a line break would make two of it. */
const folderSchema = text(1_000).refine(
  (path) => !/\p{Cc}/u.test(path) && path.split("/").every((name) => !/^(?:\.{0,2}|\.git)$/iu.test(name)),
  "must be a folder within the repository, such as services/api: no / at its ends, no empty name, no . or .., and no line break",
);

/** How the setup step prepares a clone of a repository for the agent. */
export const environmentSchema = z.object({
  setupScript: optionalText(100_000)
    .nullable()
    .meta({ description: "Run in each new clone before the agent; null: as .devcontainer/devcontainer.json says." }),
  variables: z
    .record(variableNameSchema, optionalText(32_768))
    .refine((variables) => Object.keys(variables).length <= variableLimit, `must be at most ${variableLimit} variables`)
    .meta({ description: "Set for the script and the agent. For secrets see /secret/create." }),
  sparse: z.array(folderSchema).max(sparseLimit, `must be at most ${sparseLimit} folders`).meta({
    description:
      "Folders that clones have, with the files directly in the root and in the folders above them (git's sparse checkout, cone mode); empty: everything.",
  }),
});
/** See `environmentSchema`. */
export type Environment = z.infer<typeof environmentSchema>;

/** Body of an update: fields that are not sent keep their value. */
export const updateEnvironmentSchema = environmentSchema.partial();
