import type { z } from "zod";
import type { ToolDescription } from "../../gateway/tools.ts";
import type { AttemptServices } from "../attempt/attempt.ts";

/** A tool that the service offers a session's agent, whatever its harness. */
export interface SessionTool extends Pick<ToolDescription, "name" | "description"> {
  readonly input: z.ZodObject;
  /**
   * Does what the agent asks.
   * @param input as the schema parsed it
   * @returns the tool's result for the agent
   * @throws OffstageError whose message is the tool's result: nothing was done
   */
  readonly call: (input: unknown) => Promise<string>;
}

/** What tools need of the worker. */
export type ToolServices = Pick<AttemptServices, "database">;
