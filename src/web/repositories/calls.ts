import type { z } from "zod";
import type { updateEnvironmentSchema } from "../../domain/environments/environment.ts";
import type { AllowedFinding } from "../../domain/repositories/finding.ts";
import type {
  CreateRepository,
  RepositoryLimits,
  updateRepositorySchema,
} from "../../domain/repositories/repository.ts";
import { client } from "../query.ts";

/** Calls that only these pages make: the client comes with every page, and has no room for them. */
export const calls = {
  connect: (body: CreateRepository) => client.call("repositorySchema", "/repository/create", body),
  get: (id: string) => client.call("repositorySchema", `/repository/${id}`),
  update: (id: string, body: z.input<typeof updateRepositorySchema>) =>
    client.call("repositorySchema", `/repository/${id}/update`, body),
  disconnect: (id: string) => client.call("repositorySchema", `/repository/${id}/delete`, {}),
  environment: (id: string) => client.call("environmentSchema", `/repository/${id}/environment`),
  setEnvironment: (id: string, body: z.input<typeof updateEnvironmentSchema>) =>
    client.call("environmentSchema", `/repository/${id}/environment`, body),
  limits: (id: string) => client.call("repositoryLimitsSchema", `/repository/${id}/limits`),
  setLimits: (id: string, body: RepositoryLimits) =>
    client.call("repositoryLimitsSchema", `/repository/${id}/limits`, body),
  egress: (id: string) => client.call("egressSchema", `/repository/${id}/egress`),
  setEgress: (id: string, egress: readonly string[]) =>
    client.call("egressSchema", `/repository/${id}/egress`, { egress }),
  findings: (id: string) => client.call("findingsSchema", `/repository/${id}/findings`),
  setFindings: (id: string, allowedFindings: readonly AllowedFinding[]) =>
    client.call("findingsSchema", `/repository/${id}/findings`, { allowedFindings }),
  allowFinding: (id: string, finding: AllowedFinding) =>
    client.call("findingsSchema", `/repository/${id}/allow-finding`, finding),
  automationFiles: (id: string) => client.call("automationFilesSchema", `/repository/${id}/automation-files`),
  setAutomationFiles: (id: string, enabled: boolean) =>
    client.call("automationFilesSchema", `/repository/${id}/automation-files`, { enabled }),
  secrets: (repositoryId: string, cursor: string | undefined) =>
    client.call(
      "secretsPage",
      `/secret/list?${new URLSearchParams({ repositoryId, limit: "100", ...(cursor !== undefined && { cursor }) })}`,
    ),
};
