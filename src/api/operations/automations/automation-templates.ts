import type { AutomationTemplates } from "../../../automation-files/templates.ts";
import { automationTemplatesSchema } from "../../../domain/automations/automation-file.ts";
import type { App } from "../../http/context.ts";
import { answers } from "../../http/shapes.ts";

/** Adds the operation that lists the automations to start from. */
export function addAutomationTemplateOperations(app: App, templates: AutomationTemplates): void {
  app.get(
    "/automation/template/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags: ["Automations"],
        operationId: "listAutomationTemplates",
        summary: "List automations to start from",
        response: answers(automationTemplatesSchema),
      },
    },
    async () => ({
      templates: (await templates.list()).map(({ samples, ...template }) => ({
        ...template,
        samples: samples.map(({ name }) => `${template.id}/${name}`),
      })),
    }),
  );
}
