import { basename } from "node:path/posix";
import type { z } from "zod";
import { automationFileSchema, type AutomationFile } from "../domain/automations/automation-file.ts";
import { macroSchema } from "../domain/automations/automation.ts";
import { triggerListSchema, type TriggerInput } from "../domain/automations/trigger.ts";
import { InvalidInputError } from "../domain/errors/errors.ts";
import { problemOf } from "../domain/errors/problem.ts";
import { cutProblem } from "./cut-problem.ts";

/** An automation of a file, whole. */
export interface ReadAutomation extends Omit<AutomationFile, "triggers" | "macro" | "$schema"> {
  /** The file's, or the file's name. */
  readonly macro: string;
  readonly triggers: readonly TriggerInput[];
}

/**
 * Reads a file that has an automation.
 * @param path of the file, whose name is the macro if the file has none
 * @param value what `readYaml` gave of it
 * @throws InvalidInputError that names the field
 */
export function readAutomationFile(path: string, value: unknown): ReadAutomation {
  const { $schema: _, macro: own, triggers, ...automation } = parseAs(automationFileSchema, value);
  return { ...automation, macro: own ?? macroOf(path), triggers: inputOf(triggers) };
}

/** A file's triggers as create and update take them. @throws InvalidInputError */
export function inputOf(triggers: AutomationFile["triggers"]): TriggerInput[] {
  const { data, error } = triggerListSchema.safeParse(triggers);
  if (data === undefined) throw invalid(error.issues[0], "triggers");
  return data;
}

/** @throws InvalidInputError if the file's name can't be a macro */
function macroOf(path: string): string {
  const macro = basename(path).replace(/\.ya?ml$/u, "");
  const { error } = macroSchema.safeParse(macro);
  if (error === undefined) return macro;
  throw new InvalidInputError(
    `macro: is required, since the file's name can't be one: it must be 1 to 63 of a-z, 0-9 and -`,
  );
}

/** Reads what a file has by a schema. @throws InvalidInputError that names the field */
export function parseAs<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const { data, error } = schema.safeParse(value);
  if (data === undefined && error !== undefined) throw invalid(error.issues[0]);
  return data as z.output<Schema>;
}

function invalid(issue: z.core.$ZodIssue | undefined, below = ""): InvalidInputError {
  const path = [below, ...(issue?.path ?? [])].filter((part) => part !== "").join(".");
  const problem = issue === undefined ? "is not valid" : problemOf(issue);
  return new InvalidInputError(cutProblem(path === "" ? `the file ${problem}` : `${path}: ${problem}`));
}
