import { readdirSync, readFileSync } from "node:fs";
import {
  automationTemplateFileSchema,
  type AutomationTemplate,
  type TemplateSample,
} from "../domain/automations/automation-file.ts";
import { InvalidInputError } from "../domain/errors/errors.ts";
import { inputOf, parseAs } from "./read-automation.ts";

/** An automation to start from, with its sample events whole. */
export interface Template extends Omit<AutomationTemplate, "samples"> {
  readonly samples: readonly TemplateSample[];
}

const folder = new URL("templates/", import.meta.url);

/** The automations that come with Offstage for people to start from, each a file in `templates/`, by their ids. */
export interface AutomationTemplates {
  list(): Promise<readonly Template[]>;
}

/**
 * Reads the templates' files into memory, to be called at the start: a new version that is installed later
 * must not mix with this one. They are short, and their parser is loaded on first use.
 */
export function openAutomationTemplates(): AutomationTemplates {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith(".yaml"))
    .toSorted()
    .map((file) => [file, readFileSync(new URL(file, folder), "utf8")] as const);
  let known: Promise<readonly Template[]> | null = null;
  return {
    list() {
      known ??= readAll(files).catch((error: unknown) => {
        known = null;
        throw error;
      });
      return known;
    },
  };
}

async function readAll(files: readonly (readonly [string, string])[]): Promise<readonly Template[]> {
  const { readYaml } = await import("./read-yaml.ts");
  return files.map(([file, content]) => readTemplate(readYaml, file, content));
}

function readTemplate(readYaml: (content: string) => unknown, file: string, content: string): Template {
  const id = file.slice(0, -".yaml".length);
  try {
    const {
      description,
      namesRepositories,
      samples,
      $schema: _,
      ...automation
    } = parseAs(automationTemplateFileSchema, readYaml(content));
    inputOf(automation.triggers);
    return {
      id,
      description,
      namesRepositories,
      samples,
      automation: { ...automation, macro: automation.macro ?? id },
    };
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw new Error(`the template ${file} can't be read: ${error.message}`, { cause: error });
  }
}
