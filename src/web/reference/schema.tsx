import { useState } from "react";
import type { Description, Schema } from "../../description/operations.ts";

/** The fields of an object, each with what it may be; of anything else, what it may be. */
export function Fields({ schema, components }: { schema: Schema; components: Description }) {
  const resolved = resolve(schema, components);
  const inner = objectIn(resolved, components);
  if (inner === null) return <p className="py-1">{typeOf(resolved, components)}</p>;
  const { properties = {}, required = [] } = inner;
  const names = Object.keys(properties);
  if (names.length === 0)
    return <p className="py-1 text-muted">{inner.additionalProperties === false ? "no fields" : "any fields"}</p>;
  return (
    <dl>
      {names.map((name) => (
        <Field
          key={name}
          name={name}
          schema={properties[name] ?? {}}
          isRequired={required.includes(name)}
          components={components}
        />
      ))}
    </dl>
  );
}

function Field({
  name,
  schema,
  isRequired,
  components,
}: {
  name: string;
  schema: Schema;
  isRequired: boolean;
  components: Description;
}) {
  const [open, setOpen] = useState(false);
  const resolved = resolve(schema, components);
  const inner = objectIn(resolved, components);
  const hasFields = inner !== null && Object.keys(inner.properties ?? {}).length > 0;
  const { description, default: usual } = resolved;
  return (
    <div className="py-1">
      <dt className="wrap-anywhere">
        <code className="font-mono">{name}</code> <span className="text-muted">{typeOf(resolved, components)}</span>
        {isRequired && <span className="text-muted">, required</span>}
      </dt>
      <dd className="ps-4 text-muted">
        {description !== undefined && <p className="wrap-anywhere">{description}</p>}
        {usual !== undefined && <p className="wrap-anywhere">Default {JSON.stringify(usual)}.</p>}
        {hasFields && (
          <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)} className="text-ink">
            <summary className="cursor-pointer">
              Fields<span className="sr-only"> of {name}</span>
            </summary>
            {open && (
              <div className="border-s border-line ps-3">
                <Fields schema={inner} components={components} />
              </div>
            )}
          </details>
        )}
      </dd>
    </div>
  );
}

function resolve(schema: Schema, { components }: Description): Schema {
  const name = schema.$ref?.split("/").at(-1);
  return name === undefined ? schema : (components?.schemas?.[name] ?? {});
}

/** The object that a value is or, of a list or of several choices, has in it; null: none, or several. */
function objectIn(schema: Schema, components: Description): Schema | null {
  const resolved = resolve(schema, components);
  if (resolved.properties !== undefined) return resolved;
  if (resolved.items !== undefined) return objectIn(resolved.items, components);
  const choices = (resolved.anyOf ?? resolved.oneOf ?? []).map((each) => objectIn(each, components));
  const objects = choices.filter((each) => each !== null);
  return objects.length === 1 ? (objects[0] ?? null) : null;
}

/** The type of a value, in a few words. */
function typeOf(schema: Schema, components: Description): string {
  const resolved = resolve(schema, components);
  if (resolved.const !== undefined) return JSON.stringify(resolved.const);
  if (resolved.enum !== undefined) return resolved.enum.map((value) => JSON.stringify(value)).join(" | ");
  const choices = resolved.anyOf ?? resolved.oneOf;
  if (choices !== undefined && resolved.properties === undefined) {
    return [...new Set(choices.map((each) => typeOf(each, components)))].join(" | ");
  }
  if (resolved.items !== undefined) return `list of ${typeOf(resolved.items, components)}`;
  const types = typeof resolved.type === "string" ? [resolved.type] : (resolved.type ?? ["any"]);
  return types.map((type) => (type === "string" && resolved.format !== undefined ? resolved.format : type)).join(" | ");
}
