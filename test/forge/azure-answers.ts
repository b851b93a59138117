import type { Answer } from "./api-request.ts";

/** A refusal as Azure DevOps writes it: the code is the beginning of the message. */
export function refusedByAzure(status: number, message: string, typeKey = "VssServiceException"): Answer {
  const typeName = `Microsoft.TeamFoundation.Git.Server.${typeKey}, Microsoft.TeamFoundation.Git.Server`;
  return { status, body: { $id: "1", innerException: null, message, typeName, typeKey, errorCode: 0, eventId: 3000 } };
}

/** A list as Azure DevOps answers it. */
export const azureList = (value: readonly unknown[], headers: Record<string, string> = {}): Answer => ({
  status: 200,
  headers,
  body: { count: value.length, value },
});

export const unknownToAzure =
  "TF401019: The Git repository with name or identifier does not exist or you do not have permissions for the operation you are attempting.";
