import { z } from "zod";
import { text } from "../fields/text.ts";

/** Phases in which a secret is in the environment: while a repository is set up, while the agent works. */
export const secretPhases = ["setup", "agent"] as const;
/** See `secretPhases`. */
export type SecretPhase = (typeof secretPhases)[number];

const valueLimit = 65_536;

/** Name of an environment variable that a repository or a secret may set. */
export const variableNameSchema = z
  .string()
  .max(128)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/u, "must be letters, digits and _, and not start with a digit")
  .refine((name) => !/^(?:PATH|HOME|OFFSTAGE_.*)$/u.test(name), "is set by Offstage itself: choose another name");

const phases = z
  .array(z.enum(secretPhases))
  .min(1)
  .transform((given) => secretPhases.filter((phase) => given.includes(phase)));

/** Body of a secret's creation. */
export const createSecretSchema = z.object({
  name: variableNameSchema.meta({ description: "Name of the environment variable." }),
  value: text(valueLimit).meta({ description: "Never shown again." }),
  phases: phases.optional().meta({ description: "Default: setup only, which the agent does not see." }),
  repositoryId: z.string().max(100).nullish().meta({ description: "Default: for every repository." }),
});
/** Body of an update of a secret: fields that are not sent keep their value. */
export const updateSecretSchema = z.object({ value: text(valueLimit).optional(), phases: phases.optional() });

/** A secret as the API shows it: without its value. */
export const secretSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  phases: z.array(z.enum(secretPhases)),
  repositoryId: z.uuid().nullable(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
/** See `secretSchema`. */
export type Secret = z.infer<typeof secretSchema>;
