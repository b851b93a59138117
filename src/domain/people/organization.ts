import { z } from "zod";
import { modelPatternSchema } from "../agents/model.ts";
import { egressRuleSchema } from "../environments/egress.ts";
import { dollarsSchema } from "../fields/dollars.ts";
import { repositoryPatternSchema } from "../repositories/repository-pattern.ts";
import { agentNameSchema } from "../sessions/session.ts";

const settings = {
  defaultAgent: agentNameSchema.nullable().meta({ description: "For sessions that name none; null: the server's." }),
  maxRunningSessions: z.number().int().min(1).max(100_000).nullable().meta({ description: "null: the server's." }),
  egress: z.array(egressRuleSchema).max(500).meta({ description: "Hosts that all of its sandboxes may reach." }),
  models: z
    .array(modelPatternSchema)
    .max(200)
    .nullable()
    .meta({ description: "Models that agents may use, `*` for any characters; null: all that the server allows." }),
  repositories: z
    .array(repositoryPatternSchema)
    .max(500)
    .nullable()
    .meta({ description: "Repositories that its sessions may name, such as github.com/acme/*; null: every one." }),
  sessionBudgetUsd: dollarsSchema.nullable().meta({ description: "What one session may spend on models." }),
  runBudgetUsd: dollarsSchema.nullable().meta({ description: "The same for sessions that an automation started." }),
  monthlyBudgetUsd: dollarsSchema.nullable().meta({ description: "What all of them may spend in a month (UTC)." }),
};

/** An organization as the API shows it, with its settings. */
export const organizationSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  ...settings,
  /** US dollars that its sessions spent on models in this month (UTC). */
  spentUsd: z.number(),
});
/** See `organizationSchema`. */
export type Organization = z.infer<typeof organizationSchema>;

/** Body of an update of an organization: fields that are not sent keep their value. */
export const updateOrganizationSchema = z.object(settings).partial();
/** See `updateOrganizationSchema`. */
export type UpdateOrganization = z.infer<typeof updateOrganizationSchema>;

/** Body of an organization's erasure. */
export const eraseOrganizationSchema = z.object({
  name: z.string().max(200).meta({ description: "The organization's name, to confirm that it is meant." }),
});

/** An organization's erasure that has begun. */
export const erasureSchema = z.object({ organizationId: z.uuid(), askedAt: z.iso.datetime() });
