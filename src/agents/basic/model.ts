import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModel } from "ai";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { sdkBaseUrl } from "../models.ts";

/** Environment variables. */
export type EnvironmentVariables = Readonly<Record<string, string | undefined>>;

/** Variables that contain a key; the agent's commands do not get them. */
export const keyVariables = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OFFSTAGE_MODEL_API_KEY"];

/**
 * The model that `OFFSTAGE_AGENT_MODEL` names as `<provider>/<model>`.
 * @throws InvalidInputError that names the wrong or missing variable
 */
export function modelFrom(environment: EnvironmentVariables): LanguageModel {
  const name = environment["OFFSTAGE_AGENT_MODEL"] ?? "";
  const slash = name.indexOf("/");
  const provider = name.slice(0, Math.max(slash, 0));
  const model = name.slice(slash + 1);
  if (model === "") throw new InvalidInputError("OFFSTAGE_AGENT_MODEL: must be written <provider>/<model>");
  switch (provider) {
    case "anthropic":
      return createAnthropic(settings(provider, environment["ANTHROPIC_API_KEY"], environment["ANTHROPIC_BASE_URL"]))(
        model,
      );
    case "openai":
      return createOpenAI(settings(provider, environment["OPENAI_API_KEY"], environment["OPENAI_BASE_URL"]))(model);
    case "google":
      return createGoogle(settings(provider, environment["GEMINI_API_KEY"], environment["GOOGLE_GEMINI_BASE_URL"]))(
        model,
      );
    case "compatible": {
      const baseURL = environment["OFFSTAGE_MODEL_BASE_URL"];
      if (baseURL === undefined)
        throw new InvalidInputError("OFFSTAGE_MODEL_BASE_URL: must be set for a compatible model");
      const apiKey = environment["OFFSTAGE_MODEL_API_KEY"];
      // Without `includeUsage` most servers leave token counts out of a stream.
      return createOpenAICompatible({
        name: provider,
        baseURL,
        includeUsage: true,
        ...(apiKey !== undefined && { apiKey }),
      })(model);
    }
    default:
      throw new InvalidInputError(
        `OFFSTAGE_AGENT_MODEL: there is no provider ${provider}; use anthropic, openai, google or compatible`,
      );
  }
}

function settings(
  provider: "anthropic" | "openai" | "google",
  apiKey: string | undefined,
  baseUrl: string | undefined,
) {
  const baseURL = sdkBaseUrl({ provider, baseUrl });
  return { ...(apiKey !== undefined && { apiKey }), ...(baseURL !== undefined && { baseURL }) };
}
