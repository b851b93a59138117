import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Field } from "../elements/field.tsx";
import { client } from "../query.ts";
import { AutomationForm, type AutomationFormValues } from "./automation-form.tsx";

/** Form of a new automation, which begins with nothing or with a template. */
export function NewAutomation({ create }: { readonly create: (input: AutomationFormValues) => Promise<unknown> }) {
  const [chosen, setChosen] = useState("");
  const list = useQuery({ queryKey: ["automation-templates"], queryFn: () => client.automation.templates() });
  const templates = list.data?.templates ?? [];
  const template = templates.find(({ id }) => id === chosen);
  const needs = template?.namesRepositories === true ? " Name the repositories that it is to work on." : "";
  return (
    <>
      <div className="mt-4">
        <Field label="Start from" hint={template === undefined ? "" : `${template.description}${needs}`}>
          {(attributes) => (
            <select {...attributes} className="field" value={chosen} onChange={({ target }) => setChosen(target.value)}>
              <option value="">An empty form</option>
              {templates.map(({ id, automation }) => (
                <option key={id} value={id}>
                  {automation.name}
                </option>
              ))}
            </select>
          )}
        </Field>
      </div>
      <AutomationForm
        key={chosen}
        template={template}
        verb="Create"
        save={(input) =>
          create({ ...input, ...(template !== undefined && { triggers: template.automation.triggers }) })
        }
      />
    </>
  );
}
