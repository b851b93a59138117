import { z } from "zod";
import { modelPatternSchema } from "../agents/model.ts";
import { egressRuleSchema } from "../environments/egress.ts";
import { dollarsSchema } from "../fields/dollars.ts";
import { repositoryPatternSchema } from "../repositories/repository-pattern.ts";
import { text } from "../fields/text.ts";
import { agentNameSchema } from "../sessions/session.ts";
import { invitationSchema, inviteUserSchema } from "./invitation.ts";

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

const usesServerForges = z.boolean().meta({
  description:
    "Whether it uses the operator's credentials of forges, ssh keys and local repositories; if not, only what it connects itself, and what is public.",
});

/** An organization as the API shows it, with its settings. */
export const organizationSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  ...settings,
  usesServerForges: usesServerForges.default(true),
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

/** The organization of a new installation, whose admins look after the whole server. */
export const defaultOrganization = "default";

/** Names that only the server gives: whoever had one would be taken for the server's own organization, or for one that was erased. */
const isKept = (name: string): boolean =>
  name.toLowerCase() === defaultOrganization || /^erased [\da-f-]{36}$/iu.test(name);

/** Body of the creation of an organization. */
export const createOrganizationSchema = z.object({
  name: text(100)
    .regex(/^(?!\s)[^\p{Cc}]*(?<!\s)$/u, "must not begin or end with a space, or have a control character")
    .refine((name) => !isKept(name), "is a name that only the server gives: choose another"),
  admin: inviteUserSchema.omit({ role: true }).nullish().meta({
    description: "Its first admin, who is invited; null or omitted: the answer has an admin key instead.",
  }),
  usesServerForges: usesServerForges.default(false),
});
/** See `createOrganizationSchema`. */
export type CreateOrganization = z.input<typeof createOrganizationSchema>;

/** Body of a change of another organization by an admin of the server. */
export const changeOrganizationSchema = z.object({ usesServerForges });

/** Sessions of one organization that a list counts. */
export const mostSessionsCounted = 10_000;

/** An organization as those who look after the server see it: that it is there, and how much it is used. */
export const listedOrganizationSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  createdAt: z.iso.datetime(),
  usesServerForges,
  members: z.number().int().meta({ description: "People who may sign in to it, those who were invited included." }),
  sessions: z
    .number()
    .int()
    .meta({ description: `Its sessions, at most ${mostSessionsCounted} of which are counted.` }),
  lastSessionAt: z.iso
    .datetime()
    .nullable()
    .meta({ description: "When its newest session was created; null: it has none." }),
});
/** See `listedOrganizationSchema`. */
export type ListedOrganization = z.infer<typeof listedOrganizationSchema>;

/** A new organization, with what lets its first admin in: the only answer that has it. */
export const createdOrganizationSchema = z.object({
  organization: listedOrganizationSchema,
  invitation: invitationSchema.nullable().meta({ description: "Of its first admin; null: there is a key instead." }),
  adminKey: z.string().nullable().meta({ description: "An admin key, shown only now; null: somebody was invited." }),
});
